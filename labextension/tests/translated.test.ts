import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import type * as Compiler from 'typescript';

/** Attributes and properties whose values people read. */
const SHOWN = new Set([
  'label',
  'caption',
  'title',
  'placeholder',
  'aria-label',
  'ariaLabel',
  'alt',
  'ariaDescription',
  'innerText',
  'textContent',
]);
/** Methods whose arguments people read. */
const SHOWING = new Set(['append', 'prepend', 'replaceChildren', 'createTextNode', 'fillText']);
const WORD = /\p{L}{2}/u;
/** What reads as words of a language wherever it stands, so also in a variable that is shown later. */
const SENTENCE = /^\p{Lu}\p{Ll}+$|(^|[ ,.])\p{L}\p{Ll}+ [\p{L}$]|\p{L}{2,}…/u;
/** Keys of keyboards, values of Python, names of fonts: they look like words. */
const NO_TEXT =
  /^(Enter|Escape|Home|End|PageUp|PageDown|Delete|Backspace|Arrow\w+|None|True|False)$|^at-|px sans-serif$/;
const ts = createRequire(join(process.cwd(), 'package.json'))('typescript') as typeof Compiler;

/** What the widget and the extension share. */
const SHARED = ['widgets/lib', 'widgets/charts', 'widgets/plan'];

interface Literal {
  text: string;
  pos: number;
}

/** Texts that are shown and were not given to the translator, as `line: text`. */
function untranslated(name: string, source: string): string[] {
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.ES2022, true);
  const found: string[] = [];
  const visit = (node: Compiler.Node): void => {
    for (const text of shownLiterals(node)) {
      if (WORD.test(text.text))
        found.push(`${file.getLineAndCharacterOfPosition(text.pos).line + 1}: ${text.text.trim()}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** Literals that read as sentences and were not given to the translator, as `line: text`. */
function sentences(name: string, source: string): string[] {
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.ES2022, true);
  const found: string[] = [];
  const visit = (node: Compiler.Node): void => {
    if (isTranslation(node)) return;
    for (const { text, pos } of ts.isExpression(node) ? literals(node) : []) {
      if (SENTENCE.test(text.trim()) && !NO_TEXT.test(text.trim()))
        found.push(`${file.getLineAndCharacterOfPosition(pos).line + 1}: ${text.trim()}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function isTranslation(node: Compiler.Node): boolean {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
  return ['__', '_n'].includes(node.expression.name.text);
}

/** The literals that a node shows as they are: JSX text, attributes and properties that are read. */
function shownLiterals(node: Compiler.Node): Literal[] {
  if (ts.isJsxText(node)) return [{ text: node.text, pos: node.getStart() }];
  if (ts.isJsxExpression(node) && node.expression && !ts.isJsxAttribute(node.parent))
    return literals(node.expression);
  if (ts.isJsxAttribute(node) && SHOWN.has(node.name.getText()) && node.initializer)
    return literals(node.initializer);
  if (ts.isCallExpression(node)) return shownArguments(node).flatMap(literals);
  return assigned(node);
}

/** What a call shows: the children of `h`, the texts of setters, what is appended to the page. */
function shownArguments({ expression, arguments: given }: Compiler.CallExpression): Compiler.Expression[] {
  const name = ts.isPropertyAccessExpression(expression) ? expression.name.text : expression.getText();
  if (name === 'h') return given.slice(2);
  if (name === 'setText') return given.slice(1);
  if (name === 'setAttribute') {
    const at = given.findIndex((argument) => ts.isStringLiteral(argument) && SHOWN.has(argument.text));
    return at < 0 ? [] : given.slice(at + 1);
  }
  return SHOWING.has(name) ? [...given] : [];
}

function assigned(node: Compiler.Node): Literal[] {
  if (ts.isPropertyAssignment(node) && SHOWN.has(nameOf(node.name))) return literals(node.initializer);
  if (
    ts.isBinaryExpression(node) &&
    ts.isPropertyAccessExpression(node.left) &&
    SHOWN.has(node.left.name.text)
  )
    return literals(node.right);
  return [];
}

/** The literals that an expression may be, without those inside of a call (so of the translator's). */
function literals(node: Compiler.Node): Literal[] {
  if (ts.isStringLiteralLike(node)) return [{ text: node.text, pos: node.getStart() }];
  if (ts.isTemplateExpression(node))
    return [node.head, ...node.templateSpans.map((span) => span.literal)].map((part) => ({
      text: part.text,
      pos: part.getStart(),
    }));
  if (ts.isConditionalExpression(node)) return [...literals(node.whenTrue), ...literals(node.whenFalse)];
  if (ts.isJsxExpression(node) && node.expression) return literals(node.expression);
  if (ts.isArrowFunction(node) && !ts.isBlock(node.body)) return literals(node.body);
  return [];
}

function nameOf(name: Compiler.PropertyName): string {
  return ts.isIdentifier(name) || ts.isStringLiteral(name) ? name.text : '';
}

test('a text that skips the translator is found, one that goes through it is not', () => {
  const source = [
    'const a = <p title="Stop it">{trans.__("fine")} plain {isOn ? "On now" : trans.__("off")}</p>;',
    'add({ label: `Open ${name}`, caption: trans.__("fine"), id: "not shown" });',
    'add({ label: () => "Close" });',
    'node.textContent = "Shown";',
  ].join('\n');
  assert.deepEqual(untranslated('a.tsx', source), [
    '1: Stop it',
    '1: plain',
    '1: On now',
    '2: Open',
    '3: Close',
    '4: Shown',
  ]);
});

test('a sentence that skips the translator is found in a variable, too', () => {
  const source = [
    'const head = "Waiting for data"; const names = { done: "Done" };',
    'const good = [trans.__("Trials that pass"), trans._n("%1 trial", "%1 trials", n), "at-button at-danger"];',
    'if (event.key === "Escape") setAttribute(node, "aria-label", `Curves of ${metric}`);',
  ].join('\n');
  assert.deepEqual(sentences('a.ts', source), ['1: Waiting for data', '1: Done', '3: Curves of']);
  assert.deepEqual(untranslated('a.ts', 'setText(a, "on"); h("b", {}, "off", trans.__("x"));'), [
    '1: on',
    '1: off',
  ]);
});

/** The faults that a check finds in all sources of folders. */
function faultsOf(folders: string[], check: (name: string, source: string) => string[]): string[] {
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => join(folder, name)),
  );
  assert.ok(files.length > 10);
  return files.flatMap((name) => check(name, readFileSync(name, 'utf8')).map((fault) => `${name}:${fault}`));
}

test('every text of the extension goes through the translator', () => {
  assert.deepEqual(faultsOf(['src', ...SHARED], untranslated), []);
});

test('no text has a doubled percent sign: JupyterLab shows one of them', () => {
  const doubled = (_: string, source: string): string[] =>
    source.match(/\.(__|_n)\(\s*'[^']*%%[^']*'/g) ?? [];
  assert.deepEqual(doubled('a.ts', "trans.__('Put %%magic'); trans.__('Put %1', '%%magic')"), [
    ".__('Put %%magic'",
  ]);
  assert.deepEqual(faultsOf(['src', ...SHARED], doubled), []);
});

test('what views and charts show in a widget and in JupyterLab alike goes through the translator', () => {
  assert.deepEqual(faultsOf(SHARED, sentences), []);
});
