import { posix } from 'node:path'
import { UnreadableError } from '../parsed.ts'
import type { TextSink } from '../text-sink.ts'
import { decodeText } from '../../text/charset.ts'
import { readHtml } from './html.ts'
import { readPart } from './office.ts'
import type { ZipArchive } from './zip.ts'

const CHAPTER_BYTES_MAX = 16_777_216

/** A book: its chapters in the order in which it names them. */
export async function readEpub(archive: ZipArchive, sink: TextSink): Promise<void> {
  let rootFile = ''
  await readPart(archive, 'META-INF/container.xml', sink, {
    open: (name, attributes) => {
      if (name === 'rootfile' && rootFile === '') rootFile = attributes.get('full-path') ?? ''
    },
  })
  const files = new Map<string, string>()
  const order: string[] = []
  let title = ''
  let isTitle = false
  await readPart(archive, rootFile, sink, {
    open: (name, attributes) => {
      isTitle = name === 'title' && title === ''
      if (name === 'item') files.set(attributes.get('id') ?? '', attributes.get('href') ?? '')
      else if (name === 'itemref') order.push(attributes.get('idref') ?? '')
    },
    close: () => {
      isTitle = false
    },
    text: (text) => {
      if (isTitle) title += text
    },
  })
  sink.suggestTitle(title)
  if (order.length === 0) throw new UnreadableError('BROKEN', 'the book names no chapters.')
  const folder = posix.dirname(rootFile)
  for (const id of order) {
    const entry = archive.entries.get(posix.join(folder, decodeName(files.get(id) ?? '')))
    if (entry === undefined || sink.isFull) continue
    readHtml(decodeText(await archive.bytes(entry, sink, CHAPTER_BYTES_MAX)).text, sink)
    sink.break()
  }
}

function decodeName(href: string): string {
  const [name = ''] = href.split('#')
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
