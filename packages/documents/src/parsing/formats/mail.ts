import PostalMime from 'postal-mime'
import type { TextSink } from '../text-sink.ts'
import { readHtml } from './html.ts'
import type { Attachment } from './outlook.ts'

interface Person {
  readonly name?: string | undefined
  readonly address?: string | undefined
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
