import { ImpresarioError } from './errors.ts'

/**
 * The error for an optional package that is not installed. `undefined` if the error has another cause: a package that
 * is installed and broken must report its own error.
 */
export function missingPackage(
  error: unknown,
  { purpose, packages }: { readonly purpose: string; readonly packages: readonly string[] },
): ImpresarioError | undefined {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'ERR_MODULE_NOT_FOUND') return undefined
  const missing = packages.find((name) => error.message.includes(`'${name}'`))
  if (missing === undefined) return undefined
  const message = `${purpose} needs the package ${missing}, which is not installed. Run "npm install ${packages.join(' ')}".`
  return new ImpresarioError('INVALID_CONFIGURATION', message, { cause: error })
}
