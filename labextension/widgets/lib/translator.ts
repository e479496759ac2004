/** How texts are translated: by JupyterLab's bundle in its extension, not at all elsewhere. */

/** What views need of JupyterLab's `TranslationBundle`; `%1`, `%2` ... in a text stand for the values. */
export interface Translator {
  __(text: string, ...values: unknown[]): string;
  /** `%1` is the amount; the values come after it. */
  _n(one: string, many: string, amount: number, ...values: unknown[]): string;
}

export const ENGLISH: Translator = {
  __: filled,
  _n: (one, many, amount, ...values) => filled(amount === 1 ? one : many, amount, ...values),
};

function filled(text: string, ...values: unknown[]): string {
  return text.replace(/%(\d+)/g, (_, place: string) => String(values[Number(place) - 1]));
}
