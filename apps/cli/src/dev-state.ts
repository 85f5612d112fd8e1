import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What a development server leaves in its data directory, so that other commands find it. */
export interface DevState {
  readonly url: string
  readonly clientToken: string
  readonly workerToken: string
}

export const DATA_DIRECTORY = 'impresario-data'
const FILE = 'dev.json'

export async function readDevState(directory: string): Promise<DevState | undefined> {
  const text = await readFile(join(directory, FILE), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : parseDevState(text)
}

/** A damaged file counts as none: new tokens are created. */
function parseDevState(text: string): DevState | undefined {
  try {
    const fields = JSON.parse(text) as Partial<Record<string, unknown>> | null
    const { url, client_token: clientToken, worker_token: workerToken } = fields ?? {}
    if (typeof url !== 'string' || typeof clientToken !== 'string' || typeof workerToken !== 'string') return undefined
    return { url, clientToken, workerToken }
  } catch {
    return undefined
  }
}

/** Keeps the tokens of earlier starts, so that commands written down yesterday work today. */
export async function devTokens(directory: string): Promise<Pick<DevState, 'clientToken' | 'workerToken'>> {
  const { clientToken, workerToken } = (await readDevState(directory)) ?? {}
  return { clientToken: clientToken ?? newToken('client'), workerToken: workerToken ?? newToken('worker') }
}

function newToken(kind: string): string {
  return `dev-${kind}-${randomBytes(18).toString('base64url')}`
}

export function devStateBody({ url, clientToken, workerToken }: DevState): Readonly<Record<string, string>> {
  return { url, client_token: clientToken, worker_token: workerToken }
}

/** Written beside and renamed, so that it is never read half-written. Only its owner may read it: it holds tokens. */
export async function writeDevState(directory: string, state: DevState): Promise<void> {
  await mkdir(directory, { recursive: true })
  // One `git add .` must not publish tokens and keys. An own file of that name is left alone.
  await writeFile(join(directory, '.gitignore'), '*\n', { flag: 'wx' }).catch(() => undefined)
  const file = join(directory, FILE)
  const beside = `${file}.${process.pid}`
  await writeFile(beside, `${JSON.stringify(devStateBody(state), undefined, 2)}\n`, { mode: 0o600 })
  await rename(beside, file)
}
