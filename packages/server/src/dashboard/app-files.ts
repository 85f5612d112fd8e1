import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'

/** One file of the built application. */
export interface AppFile {
  readonly content: Buffer
  /** The same, compressed when it was built. */
  readonly packed: ReadonlyMap<PackedForm, Buffer>
  readonly type: string
  /** Weak: the same content is sent in several forms. */
  readonly etag: string
  /** Its name changes with its content, so that browsers may keep it for ever. */
  readonly isImmutable: boolean
}

/** How the build leaves the files, the smallest first, and how their names end. */
const PACKED = { br: '.br', gzip: '.gz' } as const
type PackedForm = keyof typeof PACKED
const PACKED_FORMS = Object.keys(PACKED) as readonly PackedForm[]

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.md': 'text/plain; charset=utf-8',
}

/** The built files by their paths, in memory: they are few and small. Empty where nothing is built. */
export function readAppFiles(directory: string | undefined): ReadonlyMap<string, AppFile> {
  const files = new Map<string, AppFile>()
  if (directory === undefined) return files
  for (const entry of readdirSync(directory, { withFileTypes: true, recursive: true })) {
    const type = TYPES[extname(entry.name)]
    if (!entry.isFile() || type === undefined) continue
    const path = join(entry.parentPath, entry.name)
    const content = readFileSync(path)
    const name = relative(directory, path).split(sep).join('/')
    const etag = `W/"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`
    files.set(name, { content, packed: packedOf(path), type, etag, isImmutable: name.startsWith('assets/') })
  }
  return files
}

function packedOf(path: string): AppFile['packed'] {
  const forms = PACKED_FORMS.map((form): [PackedForm, string] => [form, path + PACKED[form]])
  return new Map(forms.filter(([, file]) => existsSync(file)).map(([form, file]) => [form, readFileSync(file)]))
}
