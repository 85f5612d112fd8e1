import { ASSISTANTS, assistantConfigs, bridgeStdio } from '@impresario/mcp/stdio'
import type { Assistant } from '@impresario/mcp/stdio'
import { EXIT, usage } from './failure.ts'
import { printJson } from './screen.ts'
import { addressOf, screenFor } from './session.ts'
import type { GlobalOptions } from './session.ts'

export interface McpOptions extends GlobalOptions {
  readonly print?: boolean
}

export interface McpConfigOptions extends GlobalOptions {
  readonly hideToken?: boolean
}

/** Speaks with the assistant that started this command, until it closes the input. */
export async function serveMcp(options: McpOptions): Promise<number> {
  if (options.print === true) return printConfigs(undefined, options)
  const { url, token } = await addressOf(options)
  const { stdin, stdout, stderr } = process
  if (stdin.isTTY) stderr.write(`Waiting for an assistant. To see what to paste into its configuration: --print\n`)
  await bridgeStdio({
    url,
    token,
    input: stdin,
    write: (line) => {
      stdout.write(`${line}\n`)
    },
    warn: (text) => {
      stderr.write(`${text}\n`)
    },
  })
  return EXIT.ok
}

export async function printConfigs(assistant: string | undefined, options: McpConfigOptions): Promise<number> {
  const { url, token } = await addressOf(options)
  const shown = token === undefined || options.hideToken === true ? 'YOUR_TOKEN' : token
  const configs = assistantConfigs({ url, token: shown }, wantedIn(assistant))
  const screen = screenFor(options)
  if (screen.isJson) {
    printJson(screen, configs)
    return EXIT.ok
  }
  for (const { assistant: name, place, text } of configs) {
    screen.out(`${screen.paint('bold', `# ${name}: ${place}`)}\n${text}\n`)
  }
  if (shown === token) screen.err('This contains your token. Do not share it.')
  return EXIT.ok
}

function wantedIn(assistant: string | undefined): readonly Assistant[] | undefined {
  if (assistant === undefined) return undefined
  const found = ASSISTANTS.filter((one) => one === assistant)
  if (found.length > 0) return found
  throw usage(`There is no configuration for "${assistant}".`, `There is one for ${ASSISTANTS.join(', ')}.`)
}
