import type { ByteSource } from '../byte-source.ts'
import { UnreadableError } from '../parsed.ts'
import type { TextSink } from '../text-sink.ts'
import { decodeText } from '../../text/charset.ts'
import { CompoundFile } from './compound-file.ts'
import type { CompoundEntry } from './compound-file.ts'
import { readHtml } from './html.ts'

/** A file that came with a message. */
export interface Attachment {
  readonly name: string
  readonly bytes: Uint8Array
}

const PROPERTY_BYTES_MAX = 16_777_216
const FIELDS = [
  ['0037', 'Subject'],
  ['0C1A', 'From'],
  ['0C1F', 'From'],
  ['0E04', 'To'],
  ['0E03', 'Cc'],
] as const

/** Gives what a compound file is when it is no message. */
function compoundKind(file: CompoundFile): 'msg' | 'encrypted' | 'old office' {
  const names = new Set(file.entries.filter(({ path }) => path === '').map(({ name }) => name.toLowerCase()))
  if (names.has('encryptedpackage')) return 'encrypted'
  return names.has('__properties_version1.0') ? 'msg' : 'old office'
}

/** A message of Outlook: its properties are streams, each named by its number and its type. */
export function readOutlook(source: ByteSource, sink: TextSink): readonly Attachment[] {
  const file = new CompoundFile(source)
  const kind = compoundKind(file)
  if (kind === 'encrypted') throw new UnreadableError('ENCRYPTED')
  if (kind !== 'msg') throw new UnreadableError('UNSUPPORTED', 'a binary document of Office 97–2003.')
  const property = (number: string, path = ''): string | undefined => textProperty(file, path, number)
  sink.suggestTitle(property('0037'))
  for (const [number, name] of FIELDS) {
    const value = property(number)
    if (value !== undefined && value !== '') sink.line(`${name}: ${value}`)
  }
  const body = property('1000')
  if (body !== undefined && body.trim() !== '') sink.line(body)
  else {
    const html = find(file, '', '__substg1.0_10130102')
    if (html !== undefined) readHtml(decodeText(file.read(html, PROPERTY_BYTES_MAX)).text, sink)
  }
  return attachmentsOf(file)
}

function attachmentsOf(file: CompoundFile): readonly Attachment[] {
  const storages = file.entries.filter(
    ({ name, path, isStorage }) => isStorage && path === '' && name.startsWith('__attach'),
  )
  return storages.flatMap(({ name }) => {
    const path = `${name}/`
    const data = find(file, path, '__substg1.0_37010102')
    const fileName = textProperty(file, path, '3707') ?? textProperty(file, path, '3704') ?? ''
    return data === undefined ? [] : [{ name: fileName, bytes: file.read(data, PROPERTY_BYTES_MAX) }]
  })
}

/** `001F` is UTF-16, `001E` is a charset of one byte a letter. */
function textProperty(file: CompoundFile, path: string, number: string): string | undefined {
  const wide = find(file, path, `__substg1.0_${number}001F`)
  if (wide !== undefined) return file.read(wide, PROPERTY_BYTES_MAX).toString('utf16le')
  const narrow = find(file, path, `__substg1.0_${number}001E`)
  return narrow === undefined ? undefined : decodeText(file.read(narrow, PROPERTY_BYTES_MAX)).text
}

function find(file: CompoundFile, path: string, name: string): CompoundEntry | undefined {
  return file.entries.find((entry) => entry.path === path && entry.name.toUpperCase() === name.toUpperCase())
}
