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
const WORD = /\p{L}{2}/u;
const ts = createRequire(join(process.cwd(), 'package.json'))('typescript') as typeof Compiler;

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

/** The literals that a node shows as they are: JSX text, attributes and properties that are read. */
function shownLiterals(node: Compiler.Node): Literal[] {
  if (ts.isJsxText(node)) return [{ text: node.text, pos: node.getStart() }];
  if (ts.isJsxExpression(node) && node.expression && !ts.isJsxAttribute(node.parent))
    return literals(node.expression);
  if (ts.isJsxAttribute(node) && SHOWN.has(node.name.getText()) && node.initializer)
    return literals(node.initializer);
  return assigned(node);
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

test('every text of the extension goes through the translator', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.tsx?$/.test(name),
  );
  assert.ok(files.length > 10);
  const faults = files.flatMap((name) => {
    return untranslated(name, readFileSync(join('src', name), 'utf8')).map((fault) => `src/${name}:${fault}`);
  });
  assert.deepEqual(faults, []);
});
