/** How texts are translated: by JupyterLab's bundle in its extension and its pages, not at all elsewhere. */

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

/** The event by which a widget of a kernel asks the page around for its language. */
const ASK_TRANSLATOR = 'autotrain:ask-translator';

interface Asked {
  trans: Translator;
}

/** What the page around translates with; English where none does, as in VS Code and Colab. */
export function pageTranslator(): Translator {
  const detail: Asked = { trans: ENGLISH };
  document.dispatchEvent(new CustomEvent<Asked>(ASK_TRANSLATOR, { detail }));
  return detail.trans;
}

/** From now on the widgets of this page are translated with it. */
export function lendTranslator(trans: Translator): void {
  document.addEventListener(ASK_TRANSLATOR, (event) => {
    (event as CustomEvent<Asked>).detail.trans = trans;
  });
}

function filled(text: string, ...values: unknown[]): string {
  return text.replace(/%(\d+)/g, (_, place: string) => String(values[Number(place) - 1]));
}
