import PostalMime from 'postal-mime'
import { MBOX_LINE } from '../kind.ts'
import type { TextSink } from '../text-sink.ts'
import { readHtml } from './html.ts'
import type { Attachment } from './outlook.ts'

interface Person {
  readonly name?: string | undefined
  readonly address?: string | undefined
}

const LINE_BYTES_MAX = 1_000

/** The mails of an mbox file: each begins with a line of its own, after an empty one. */
export function* mailsIn(bytes: Buffer): Generator<Buffer> {
  let from = 0
  for (let at = bytes.indexOf('\nFrom '); at !== -1; at = bytes.indexOf('\nFrom ', at + 1)) {
    const line = bytes.toString('latin1', at + 1, at + LINE_BYTES_MAX).split(/\r?\n/, 1)[0] ?? ''
    const isAfterEmpty = bytes[at - 1] === 0x0a || (bytes[at - 1] === 0x0d && bytes[at - 2] === 0x0a)
    if (!isAfterEmpty || !MBOX_LINE.test(line)) continue
    yield mailAt(bytes, from, at)
    from = at + 1
  }
  yield mailAt(bytes, from, bytes.length)
}

/** Without the line that only separates. */
function mailAt(bytes: Buffer, from: number, to: number): Buffer {
  const mail = bytes.subarray(from, to)
  return mail.subarray(0, 5).toString('latin1') === 'From ' ? mail.subarray(mail.indexOf('\n') + 1) : mail
}

/** An e-mail: what its reader sees. Its attachments are for the caller. */
export async function readMail(bytes: Uint8Array, sink: TextSink): Promise<readonly Attachment[]> {
  const mail = await PostalMime.parse(bytes, { maxNestingDepth: 64, maxHeadersSize: 2_097_152 })
  sink.suggestTitle(mail.subject)
  if (mail.subject !== undefined) sink.line(`Subject: ${mail.subject}`)
  if (mail.from !== undefined) sink.line(`From: ${peopleOf([mail.from])}`)
  if (mail.to !== undefined) sink.line(`To: ${peopleOf(mail.to)}`)
  if (mail.cc !== undefined) sink.line(`Cc: ${peopleOf(mail.cc)}`)
  if (mail.date !== undefined) sink.line(`Date: ${mail.date}`)
  if (mail.text !== undefined && mail.text.trim() !== '') sink.line(mail.text)
  else if (mail.html !== undefined) readHtml(mail.html, sink)
  return mail.attachments.map(({ filename, content }) => ({ name: filename ?? '', bytes: bytesOf(content) }))
}

function peopleOf(people: readonly Person[]): string {
  return people.map(({ name, address }) => [name, address].filter(Boolean).join(' ')).join(', ')
}

function bytesOf(content: string | ArrayBuffer | Uint8Array): Uint8Array {
  return typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content)
}
