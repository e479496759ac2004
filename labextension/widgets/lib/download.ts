/** Files for the browser's downloads. */

/** Give a file to the browser's downloads. */
export function download(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  downloadFrom(url, name.replace(/[^\w.@-]+/g, '_'));
  window.setTimeout(() => {
    URL.revokeObjectURL(url);
  }, 60_000);
}

/** Give what is at an address to the browser's downloads. @param name "": as the server calls it. */
export function downloadFrom(url: string, name = ''): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
}
