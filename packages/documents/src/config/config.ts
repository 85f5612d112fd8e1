import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ImpresarioError } from '@impresario/protocol'
import { parse } from 'yaml'
import { z } from 'zod'
import { sizeBytes, spanMs } from './quantities.ts'

const span = (fallback: string) =>
  z
    .union([z.string(), z.number()])
    .default(fallback)
    .transform((value, context) => {
      const ms = typeof value === 'number' ? value * 1_000 : spanMs(value)
      if (ms !== undefined && ms > 0 && ms <= 30 * 86_400_000) return ms
      context.addIssue({ code: 'custom', message: 'must be a span such as 30s, 5m or 1h, and more than 0' })
      return z.NEVER
    })

const size = (fallback: string) =>
  z
    .union([z.string(), z.number()])
    .default(fallback)
    .transform((value, context) => {
      const bytes = typeof value === 'number' ? value : sizeBytes(value)
      if (bytes !== undefined && bytes > 0 && Number.isSafeInteger(bytes)) return bytes
      context.addIssue({ code: 'custom', message: 'must be a size such as 100MB or 64KiB' })
      return z.NEVER
    })

const whole = (fallback: number, least: number, most: number) => z.number().int().min(least).max(most).default(fallback)

const engineSchema = z.strictObject({
  workers: z
    .strictObject({
      /** Documents at a time. */
      count: whole(10, 1, 1_000),
      /** Longest time for one task. */
      timeout: span('5m'),
    })
    .prefault({}),
  queue: z.strictObject({ max_size: whole(1_000, 1, 1_000_000), priority_levels: whole(3, 1, 10) }).prefault({}),
  retry: z
    .strictObject({
      max_attempts: whole(3, 1, 100),
      initial_delay: span('1s'),
      max_delay: span('30s'),
      backoff_factor: z.number().min(1).max(10).default(2),
    })
    .prefault({}),
  limits: z
    .strictObject({
      max_file_size: size('100MB'),
      max_concurrent_files: whole(50, 1, 10_000),
      /** Longest time in which one file must be read. */
      parse_timeout: span('30s'),
      /** Largest memory of a process that reads files. */
      parse_memory: size('140MB'),
      /** Processes that read files; more than one only while a file takes long. */
      parse_processes: whole(2, 1, 64),
      /** Characters that are kept and found of one document. */
      text_chars: whole(2_000_000, 1_000, 50_000_000),
      /** What packed files may unpack to. */
      unpacked_size: size('256MB'),
    })
    .prefault({}),
  health_check: z.strictObject({ interval: span('30s'), timeout: span('5s') }).prefault({}),
})

const watchSchema = z.strictObject({
  /** A file is taken when it has not changed for so long. */
  quiet: span('300ms'),
  /** How often everything is compared with the index, for events that were lost. */
  rescan: span('5m'),
  /** The same where the file system sends no events. */
  poll: span('5s'),
})

/** The text of pictures and of scanned pages, with tesseract where the system has it. */
const ocrSchema = z.strictObject({
  enabled: z.boolean().default(true),
  /** Its name on the path, or its whole path. */
  program: z.string().min(1).default('tesseract'),
  /** Those that are installed are used. */
  languages: z
    .array(z.string().regex(/^[A-Za-z][\w/]{1,30}$/, 'must be a name such as rus or eng'))
    .min(1)
    .max(20)
    .default(['rus', 'eng']),
  /** Longest time for one file with all its pages. */
  timeout: span('60s'),
  /** Largest memory of the program. */
  memory: size('512MB'),
  /** Pages of one PDF. */
  max_pages: whole(50, 1, 10_000),
})

const configSchema = z.strictObject({
  /** Folders to watch; those that are not absolute begin at the file's own directory. */
  folders: z.array(z.string().min(1)).default([]),
  /** Patterns of paths that are left out, such as `drafts/**` or `*.log`. */
  ignore: z.array(z.string().min(1)).default([]),
  /** Patterns of paths that are read sooner or later than others. */
  priorities: z
    .strictObject({
      high: z.array(z.string()).default([]),
      normal: z.array(z.string()).default([]),
      low: z.array(z.string()).default([]),
    })
    .prefault({}),
  watch: watchSchema.prefault({}),
  /** On a server: whose folders are whose. Each client has an index of its own. */
  clients: z.record(z.string().min(1), z.strictObject({ folders: z.array(z.string().min(1)).default([]) })).default({}),
  ocr: ocrSchema.prefault({}),
  engine: engineSchema.prefault({}),
})

export type DocumentsConfig = z.output<typeof configSchema>

/** Checks a configuration and fills in what it leaves out. */
export function documentsConfig(given: unknown = {}, from = 'The configuration'): DocumentsConfig {
  const result = configSchema.safeParse(given ?? {})
  if (result.success) return result.data
  const problems = result.error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`)
  throw new ImpresarioError('INVALID_CONFIGURATION', `${from} cannot be used. ${problems.join('; ')}.`)
}

/** Reads a YAML file, such as the one of the specification. */
export function loadDocumentsConfig(file: string): DocumentsConfig {
  let given: unknown
  try {
    given = parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new ImpresarioError('INVALID_CONFIGURATION', `${file} cannot be read: ${reason}`, { cause })
  }
  const config = documentsConfig(given, file)
  const placed = (folders: readonly string[]): string[] => folders.map((folder) => resolve(dirname(file), folder))
  const clients = Object.entries(config.clients).map(([id, { folders }]) => [id, { folders: placed(folders) }] as const)
  return { ...config, folders: placed(config.folders), clients: Object.fromEntries(clients) }
}
