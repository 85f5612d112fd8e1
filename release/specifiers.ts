/** What a module imports, in JavaScript and declarations as the compiler writes them. */
const IMPORT = /(?<before>\bfrom\s*|\bimport\s*\(?\s*)(?<quote>['"])(?<specifier>@?[a-z.][\w./:-]*)\k<quote>/g

/** A file that a module names beside itself: a thread's program, a script for a database. */
const BESIDE = /new URL\((?<quote>['"])(?<path>[\w./-]+)\k<quote>, import\.meta\.url\)/g

export function importsIn(code: string): readonly string[] {
  return [...code.matchAll(IMPORT)].map(({ groups }) => groups?.['specifier'] ?? '')
}

export function filesNamedIn(code: string): readonly string[] {
  return [...code.matchAll(BESIDE)].map(({ groups }) => groups?.['path'] ?? '')
}

export function withImports(code: string, rewrite: (specifier: string) => string): string {
  return code.replaceAll(
    IMPORT,
    (_whole, before: string, quote: string, specifier: string) => `${before}${quote}${rewrite(specifier)}${quote}`,
  )
}

/** `pg` of `pg/lib/x`, `@scope/name` of `@scope/name/x`. */
export function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}
