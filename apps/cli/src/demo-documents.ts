import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientDocuments, Hit } from '@impresario/documents'
import type { Screen } from './screen.ts'
import { span } from './time.ts'

/** The client of a development server. */
const CLIENT = 'default'
const LOOK_MS = 100

/** Each has the words of a search below in another form. */
const SAMPLES: Readonly<Record<string, string | Buffer>> = {
  'договор-аренды.md':
    '# Договор аренды № 17/2026\n\nСтороны подписали договор аренды склада на Лесной улице. Арендатор платит ежемесячно,\n' +
    'до пятого числа. Все приложения к договору хранятся у обеих сторон.\n',
  'письмо-поставщику.eml':
    'From: Anna <anna@example.com>\r\nTo: Oleg <oleg@example.com>\r\nSubject: Delivery on Friday\r\n' +
    'MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n' +
    'Олег, поставка пришла неполной: двух коробок нет. Договоры на следующий квартал готовы.\r\n',
  'quarterly-report.html':
    '<!doctype html><title>Quarterly report</title><h1>Quarterly report</h1><p>Revenue grew by 12 %. Two warehouses were ' +
    'moved, and every supplier delivered on time except one.</p><script>hidden()</script>',
  'meeting-notes.txt':
    'Meeting of 3 November. We agreed to deliver the new catalogue in spring. Prices follow in a separate table.\n',
  'price-list.csv': 'code,name,price\nAB-1200,Tripod,49.90\nAB-1300,Lens cap,4.50\n',
  // Windows-1251, as old programs write it.
  'инструкция.txt': cp1251('Инструкция. Перед запуском проверьте поставку: кабель, штатив и крышку объектива.\r\n'),
}

const SEARCHES = ['delivering', 'AB-1200', 'договора', 'поставками']

/** A folder of documents beside the demo's films. It is indexed while the demo runs, and asked at its end. */
export class DemoDocuments {
  readonly #folder: string
  readonly #documents: ClientDocuments

  private constructor(folder: string, documents: ClientDocuments) {
    this.#folder = folder
    this.#documents = documents
  }

  /** Writes the samples; files that are there already stay as they are. */
  static async create(directory: string): Promise<DemoDocuments> {
    const { ClientDocuments: Documents, documentsConfig } = await import('@impresario/documents')
    const folder = join(directory, 'documents')
    await mkdir(folder, { recursive: true })
    for (const [name, content] of Object.entries(SAMPLES)) {
      await writeFile(join(folder, name), content, { flag: 'wx' }).catch(ignoreExisting)
    }
    const config = documentsConfig({ clients: { [CLIENT]: { folders: [folder] } }, engine: { workers: { count: 2 } } })
    return new DemoDocuments(folder, new Documents({ directory: join(directory, 'documents-index'), config }))
  }

  /** For the server: the blueprint of documents, and the routes to search them. */
  get app(): ClientDocuments {
    return this.#documents
  }

  /** Waits until every sample is searchable, and shows what a search finds. */
  async show(screen: Screen, signal: AbortSignal): Promise<void> {
    const began = performance.now()
    const own = await this.#documents.of(CLIENT)
    for (;;) {
      const { files } = await own.stats()
      const done = (files['completed'] ?? 0) + (files['failed'] ?? 0)
      if (done >= Object.keys(SAMPLES).length) break
      await sleep(LOOK_MS, undefined, { signal })
    }
    const took = span((performance.now() - began) / 1_000)
    const place = relative(process.cwd(), this.#folder)
    screen.out(
      `\n${screen.paint('bold', 'Documents')} are indexed from ${place}: ${Object.keys(SAMPLES).length} searchable after ${took}.`,
    )
    for (const query of SEARCHES) {
      const { hits } = await own.search(query, { limit: 2 })
      screen.out(`  ${screen.paint('cyan', query)}`)
      for (const hit of hits) screen.out(`    ${basename(hit.path)}  ${marked(hit, screen)}`)
    }
  }

  async start(server: Parameters<ClientDocuments['start']>[0]): Promise<void> {
    await this.#documents.start(server)
  }

  async stop(): Promise<void> {
    await this.#documents.stop()
  }
}

/** The words that were found, as they stand in the text, with a little around them. */
function marked({ snippet, highlights }: Hit, screen: Screen): string {
  const [first] = highlights
  if (first === undefined) return ''
  const [start, end] = first
  const from = Math.max(0, snippet.lastIndexOf(' ', Math.max(0, start - 24)))
  const to = snippet.indexOf(' ', end + 24)
  const after = snippet.slice(end, to === -1 ? undefined : to)
  const text = `${snippet.slice(from, start)}${screen.paint('bold', snippet.slice(start, end))}${after}`
  return `… ${text.replaceAll(/\s+/g, ' ').trim()} …`
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
}

/** Cyrillic letters stand in one row in both: А to я. */
function cp1251(text: string): Buffer {
  return Buffer.from(
    Array.from(text, (letter) => {
      const code = letter.codePointAt(0) ?? 0
      return code >= 0x04_10 && code <= 0x04_4f ? code - 0x04_10 + 0xc0 : code
    }),
  )
}
