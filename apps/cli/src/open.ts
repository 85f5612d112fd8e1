import { spawn } from 'node:child_process'
import { EXIT, Failure } from './failure.ts'
import { jobIdOf } from './job-prefix.ts'
import { printJson } from './screen.ts'
import { addressOf, withServer } from './session.ts'
import type { GlobalOptions } from './session.ts'

export interface OpenOptions extends GlobalOptions {
  /** False with `--no-browser`. */
  readonly browser?: boolean
}

/** Opens the dashboard in a browser, signed in; with a job, on its page. */
export async function openDashboard(job: string | undefined, options: OpenOptions): Promise<number> {
  const address = await addressOf(options)
  return withServer(options, async ({ client, screen }) => {
    const id = job === undefined ? undefined : (await client.job(await jobIdOf(client, job)).status()).id
    const link = await linkTo(id, address)
    if (screen.isJson) {
      printJson(screen, { url: link })
      return EXIT.ok
    }
    screen.out(link)
    if (options.browser !== false && screen.isTerminal) launchBrowser(link)
    return EXIT.ok
  })
}

async function linkTo(
  jobId: string | undefined,
  { url, token }: { readonly url: string; readonly token: string | undefined },
): Promise<string> {
  const base = url.endsWith('/') ? url : `${url}/`
  const response = await fetch(new URL('api/v1/dashboard/links', base), {
    method: 'POST',
    headers: token === undefined ? {} : { 'x-client-token': token },
  })
  const body = (await response.json().catch(() => ({}))) as Partial<Record<string, unknown>>
  const { path, code, message } = body
  if (!response.ok || typeof path !== 'string') {
    throw new Failure(
      typeof code === 'string' ? code : 'UNREACHABLE',
      typeof message === 'string' ? message : 'The server has no dashboard.',
    )
  }
  const page = jobId === undefined ? '' : `jobs/${encodeURIComponent(jobId)}`
  return new URL(path.replace(/^\/dashboard\//, `dashboard/${page}`), base).href
}

/** The link is printed in any case, so a machine without a browser is no error. */
function launchBrowser(link: string): void {
  const [command, ...args] =
    process.platform === 'darwin'
      ? ['open', link]
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler', link]
        : ['xdg-open', link]
  const child = spawn(command ?? '', args, { detached: true, stdio: 'ignore' })
  child.on('error', () => undefined)
  child.unref()
}
