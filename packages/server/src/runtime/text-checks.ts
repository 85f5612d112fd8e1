import { isIP } from 'node:net'
import { URL } from 'node:url'

/*
 * What a setting that is a text must look like. Each check gives what is wrong, as the rest of a sentence that begins with
 * the name of the setting, or nothing. They run before anything is opened.
 */

export type TextCheck = (text: string) => string | undefined

/** A name of a host has labels of letters, digits and "-", at most 253 characters in all. */
const HOST_NAME = /^(?=.{1,253}$)[a-z\d](?:[a-z\d-]{0,62})(?:\.[a-z\d](?:[a-z\d-]{0,62}))*\.?$/i

export function hostProblem(text: string): string | undefined {
  if (isIP(text) !== 0 || (HOST_NAME.test(text) && !/^[\d.]+$/.test(text))) return undefined
  return `is ${JSON.stringify(text)}. It must be an address or the name of a host, such as 127.0.0.1, :: or localhost.`
}

const INSTANCE_CHARS_MAX = 128

/** It is written to the log and into headers, and names the instance in the storage. */
export function instanceProblem(text: string): string | undefined {
  if (text.length <= INSTANCE_CHARS_MAX && /^[\w.:@-]+$/.test(text)) return undefined
  return `is ${JSON.stringify(text.slice(0, INSTANCE_CHARS_MAX))}. It must be 1 to ${INSTANCE_CHARS_MAX} letters, digits, ".", "_", ":", "@" or "-".`
}

const HEADER_TOKEN_CHARS_MAX = 1_024

/** It travels in a header. */
export function headerTokenProblem(text: string): string | undefined {
  if (text === '' || (text.length <= HEADER_TOKEN_CHARS_MAX && /^[\u0021-\u007E]+$/.test(text))) return undefined
  return `must be at most ${HEADER_TOKEN_CHARS_MAX} plain characters (no spaces, no letters beyond ASCII), because it travels in a header.`
}

const SECRET_CHARS_MIN = 16

export function secretKeyProblem(text: string): string | undefined {
  if (text === '' || text.length >= SECRET_CHARS_MIN) return undefined
  return `is too short. It must have at least ${SECRET_CHARS_MIN} characters; choose a long random one.`
}

export function publicUrlProblem(text: string): string | undefined {
  if (text === '') return undefined
  const form = 'It must be an address such as https://jobs.example.com, without a query.'
  if (!URL.canParse(text)) return `is ${JSON.stringify(text)}. ${form}`
  const { protocol, username, password, search, hash } = new URL(text)
  if (username !== '' || password !== '') return `holds a user or a password, which everybody would see. ${form}`
  const isGood = ['http:', 'https:'].includes(protocol) && search === '' && hash === ''
  return isGood ? undefined : `is ${JSON.stringify(text)}. ${form}`
}

/** The origins of a list with commas between. */
export function originsIn(text: string): readonly string[] {
  return listed(text)
}

export function originsProblem(text: string): string | undefined {
  const wrong = originsIn(text).find((origin) => origin !== '*' && !isOrigin(origin))
  if (wrong === undefined) return undefined
  return (
    `has ${JSON.stringify(wrong)}. An origin is a scheme, a host and maybe a port, in lower case and ` +
    'without a slash at its end, such as https://app.example; or * for all.'
  )
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}

const PROXY_GROUPS: ReadonlySet<string> = new Set(['loopback', 'linklocal', 'uniquelocal'])

export function proxiesProblem(text: string): string | undefined {
  const plain = text.trim().toLowerCase()
  if (plain === 'true' || plain === 'false') return undefined
  const wrong = listed(plain).find((one) => !PROXY_GROUPS.has(one) && !isNetwork(one))
  if (wrong === undefined) return undefined
  return (
    `has ${JSON.stringify(wrong)}. Write addresses such as 192.0.2.7, networks such as 10.0.0.0/8, or loopback, linklocal, ` +
    'uniquelocal, with commas between; true for all three.'
  )
}

/** An address, or one with the bits of its network. A network of everybody would believe everybody. */
function isNetwork(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0) return false
  if (bits === undefined) return true
  return /^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= (version === 4 ? 32 : 128)
}

function listed(text: string): readonly string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
}

/** Only its form: whether it answers is seen at the start. Never repeats the address, because it may hold a password. */
export function historyProblem(text: string): string | undefined {
  if (['', 'off', 'memory:'].includes(text) || /^sqlite:(?:\/\/(?=\/))?[^\s].*$/.test(text)) return undefined
  if (/^postgres(?:ql)?:\/\//i.test(text) && URL.canParse(text)) return undefined
  return (
    'is not understood. Write it as sqlite:./impresario-data/history.db, as postgres://user:password@host:5432/database, ' +
    'as memory: or off, or leave it empty.'
  )
}
