/**
 * Patterns of paths as `.gitignore` has them: `*` and `?` within a name, `**` over any number of folders. One without a slash
 * fits a name anywhere.
 */
export function patternMatcher(patterns: readonly string[]): (path: string) => boolean {
  const expressions = patterns.map(expressionOf)
  return (path) => expressions.some((expression) => expression.test(path))
}

function expressionOf(pattern: string): RegExp {
  const hasFolder = pattern.slice(0, -1).includes('/')
  const body = pattern.replace(/^\//, '').replace(/\/$/, '/**')
  const source = body
    .replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll(/\*\*\/?|\*|\?/g, (wild) =>
      wild === '**/' ? '(?:.*/)?' : wild === '**' ? '.*' : wild === '*' ? '[^/]*' : '[^/]',
    )
  return new RegExp(`${hasFolder && pattern.startsWith('/') ? '^/' : '(?:^|/)'}${source}$`, 'u')
}
