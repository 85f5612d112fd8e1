import type { Client } from '@impresario/client'
import { COMMAND, Failure, usage } from './failure.ts'

/** The first digits of a UUID, with its dashes or without; whole ids and names of another form are left as they are. */
const PREFIX = /^(?=.{4,35}$)[\da-f]{1,8}(?:-[\da-f]{0,4}){0,3}(?:-[\da-f]{0,12})?$/i
const WHOLE = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i
const TIME_DIGITS = 12
const SHOWN_MAX = 10
/** Jobs that were made in the same span as the one that is meant. */
const LOOKED_AT_MAX = 1_000

/**
 * The job that begins with these digits. Ids begin with their time, so the jobs that may be meant are those of a span of
 * time, and no search is needed.
 */
export async function jobIdOf(client: Client, given: string): Promise<string> {
  if (!PREFIX.test(given)) return given
  const prefix = given.toLowerCase()
  const digits = prefix.replaceAll('-', '').slice(0, TIME_DIGITS)
  const from = Number.parseInt(digits.padEnd(TIME_DIGITS, '0'), 16)
  const until = Number.parseInt(digits.padEnd(TIME_DIGITS, 'f'), 16) + 1
  const span = { createdAfter: from / 1_000, createdBefore: Math.min(until, 2 ** 48 - 1) / 1_000 }
  const fields = ['id', 'blueprintName', 'status'] as const
  const found = (await client.list({ ...span, fields, limit: 100 }).all(LOOKED_AT_MAX)).filter(({ id }) =>
    id.startsWith(prefix),
  )
  // A child's id begins with that of its parent: the parent is meant.
  const shortest = found.toSorted((a, b) => a.id.length - b.id.length)[0]
  if (shortest === undefined) {
    throw new Failure('JOB_NOT_FOUND', `No job begins with "${given}".`, {
      hint: 'A job is visible only to the client that started it, and to admins.',
    })
  }
  const others = found.filter(({ id }) => id !== shortest.id && !id.startsWith(`${shortest.id}-`))
  if (others.length === 0) return shortest.id
  const candidates = [shortest, ...others]
  const lines = candidates
    .slice(0, SHOWN_MAX)
    .map(({ id, blueprintName: name, status }) => `  ${id}  ${name}  ${status.replaceAll('_', ' ')}`)
  const more = candidates.length > SHOWN_MAX ? [`  … and ${candidates.length - SHOWN_MAX} more`] : []
  throw usage(
    `${candidates.length} jobs begin with "${given}". Write more of the id:\n${[...lines, ...more].join('\n')}`,
  )
}

/** The same for automations, of which a client has few: by the first digits of the id, or by the title. */
export async function automationIdOf(client: Client, given: string): Promise<string> {
  if (WHOLE.test(given)) return given
  const all = await client.automations.list({ limit: 100 }).all(LOOKED_AT_MAX)
  const title = given.toLowerCase()
  const named = all.filter((one) => one.title.toLowerCase() === title)
  const found = named.length > 0 || !PREFIX.test(given) ? named : all.filter(({ id }) => id.startsWith(title))
  const [first] = found
  if (first !== undefined && found.length === 1) return first.id
  if (first === undefined) {
    throw new Failure('NOT_FOUND', `There is no automation with the id or title "${given}".`, {
      hint: `List them: ${COMMAND} automations list. An automation is visible only to its owner, and to admins.`,
    })
  }
  const lines = found.slice(0, SHOWN_MAX).map((one) => `  ${one.id}  ${one.title}`)
  throw usage(`"${given}" may be any of ${found.length} automations. Write more of the id:\n${lines.join('\n')}`)
}
