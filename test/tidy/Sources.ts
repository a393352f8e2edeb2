/**
 * Facts about TypeScript files for the rules: imports, lengths of functions, mentioned names. The
 * compiler's parser reads them, so comments and strings are never mistaken for code.
 */

import { type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast"
import * as is from "typescript/unstable/ast/is"
import { createVirtualFileSystem } from "typescript/unstable/fs"
import { API } from "typescript/unstable/sync"

interface Place {
  /** Counted from 1. */
  readonly line: number
}

export interface Import extends Place {
  /** As written: `effect/sql`, `node:fs`; a relative import as a path from the project's root: `src/contract/api/Text.ts`. */
  readonly target: string
  /** Whether the import is of types only and erased at run time. */
  readonly typeOnly: boolean
}

interface FunctionLength extends Place {
  readonly name: string
  /** Lines of the function without those of its inner functions. */
  readonly ownLines: number
  /** Lines of the function with those of its inner functions. */
  readonly allLines: number
}

/** A name in use, as `Date.now`, `setTimeout()`, `new Date()`, or a construct: `async`, `await`, `try`, `any`. */
interface Mention extends Place {
  readonly what: string
}

export interface Source {
  /** From the project's root. */
  readonly path: string
  readonly text: string
  readonly imports: ReadonlyArray<Import>
  readonly functions: ReadonlyArray<FunctionLength>
  readonly mentions: ReadonlyArray<Mention>
}

export type Texts = ReadonlyMap<string, string>

/** Reads several projects at once; each is a map from paths to texts. */
export const readProjects = (projects: ReadonlyArray<Texts>): ReadonlyArray<ReadonlyMap<string, Source>> => {
  const homes = projects.map((texts, index) => ({ texts, home: `/${index}`, config: `/${index}/tsconfig.json` }))
  const files = homes.flatMap(({ config, home, texts }) => [
    [config, JSON.stringify({ compilerOptions: options, files: [...texts.keys()] })],
    ...[...texts].map(([path, text]) => [`${home}/${path}`, text])
  ])
  const api = new API({ cwd: "/", fs: createVirtualFileSystem(Object.fromEntries(files)) })
  try {
    const snapshot = api.updateSnapshot({ openProjects: homes.map(({ config }) => config) })
    return homes.map(({ config, home, texts }) => {
      const program = snapshot.getProject(config)!.program
      return new Map([...texts.keys()].map((path) => [path, sourceOf(path, program.getSourceFile(`${home}/${path}`)!)]))
    })
  } finally {
    api.close()
  }
}

/** Each file is parsed by itself; nothing is resolved or checked. */
const options = { noLib: true, noResolve: true, types: [], module: "esnext", target: "esnext" }

const sourceOf = (path: string, file: SourceFile): Source => {
  const imports: Array<Import> = []
  const functions: Array<FunctionLength> = []
  const mentions: Array<Mention> = []
  const lineAt = lineFinder(file.text)
  const visit = (node: Node) => {
    const line = lineAt(node.getStart(file))
    const imported = importOf(node)
    if (imported !== undefined) imports.push({ ...imported, target: targetOf(path, imported.target), line })
    if (isFunction(node)) {
      const allLines = lineAt(node.end - 1) - line + 1
      functions.push({ name: nameOf(node, file), ownLines: ownLines(node, file, lineAt), allLines, line })
    }
    for (const what of mentionsIn(node, file)) mentions.push({ what, line })
    node.forEachChild(visit)
  }
  visit(file)
  return { path, text: file.text, imports, functions, mentions }
}

const lineFinder = (text: string) => {
  const starts = [0]
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1)
  return (position: number) => starts.findLastIndex((start) => start <= position) + 1
}

const importOf = (node: Node): Omit<Import, "line"> | undefined => {
  if (is.isImportDeclaration(node) && is.isStringLiteral(node.moduleSpecifier)) {
    const clause = node.importClause
    const named = clause?.namedBindings
    const eachTyped =
      clause !== undefined &&
      clause.name === undefined &&
      named !== undefined &&
      is.isNamedImports(named) &&
      named.elements.length > 0 &&
      named.elements.every((element) => element.isTypeOnly)
    const typeOnly = clause?.phaseModifier === SyntaxKind.TypeKeyword || eachTyped
    return { target: node.moduleSpecifier.text, typeOnly }
  }
  if (is.isExportDeclaration(node) && node.moduleSpecifier !== undefined && is.isStringLiteral(node.moduleSpecifier)) {
    return { target: node.moduleSpecifier.text, typeOnly: node.isTypeOnly }
  }
  if (is.isCallExpression(node) && node.expression.kind === SyntaxKind.ImportKeyword) {
    const [target] = node.arguments
    if (target !== undefined && is.isStringLiteral(target)) return { target: target.text, typeOnly: false }
  }
  return undefined
}

const targetOf = (path: string, target: string): string =>
  target.startsWith(".") ? new URL(target, `file:///${path}`).pathname.slice(1) : target

const isFunction = (node: Node): boolean =>
  is.isArrowFunction(node) ||
  is.isFunctionExpression(node) ||
  is.isFunctionDeclaration(node) ||
  is.isMethodDeclaration(node) ||
  is.isConstructorDeclaration(node) ||
  is.isGetAccessorDeclaration(node) ||
  is.isSetAccessorDeclaration(node)

const nameOf = (node: Node, file: SourceFile): string => {
  const named = [node, node.parent].find((candidate) => "name" in candidate && candidate.name !== undefined)
  return named === undefined ? "a function" : (named as Node & { readonly name: Node }).name.getText(file)
}

const ownLines = (node: Node, file: SourceFile, lineAt: (position: number) => number): number => {
  const first = lineAt(node.getStart(file))
  const lines = new Set(Array.from({ length: lineAt(node.end - 1) - first + 1 }, (_, offset) => first + offset))
  // The first line of a function also belongs to the enclosing code.
  const leaveOut = (child: Node): void => {
    if (!isFunction(child)) return void child.forEachChild(leaveOut)
    const last = lineAt(child.end - 1)
    for (let line = lineAt(child.getStart(file)) + 1; line <= last; line++) lines.delete(line)
  }
  node.forEachChild(leaveOut)
  return lines.size
}

const mentionsIn = (node: Node, file: SourceFile): ReadonlyArray<string> => {
  switch (node.kind) {
    case SyntaxKind.AsyncKeyword:
      return ["async"]
    case SyntaxKind.AwaitExpression:
      return ["await"]
    case SyntaxKind.TryStatement:
      return ["try"]
    case SyntaxKind.AnyKeyword:
      return ["any"]
  }
  if (is.isPropertyAccessExpression(node)) return [node.getText(file).replaceAll(/\s/g, "")]
  if (is.isCallExpression(node) && is.isIdentifier(node.expression)) return [`${node.expression.text}()`]
  if (is.isNewExpression(node) && is.isIdentifier(node.expression)) {
    return [`new ${node.expression.text}(${node.arguments?.length ? "…" : ""})`]
  }
  return []
}
