import { Option } from 'commander'
import type { Command } from 'commander'
import { act } from './action.ts'
import type { End } from './action.ts'
import type { McpConfigOptions, McpOptions } from './mcp.ts'

const MCP_HELP = `
An assistant starts this command and talks to it over its input and output; it passes everything on to the server at --url.
Assistants that speak HTTP need no command: the server itself answers at /mcp. See docs/guide/mcp.md.

  impresario mcp --print                        what to paste into the configuration of the usual assistants
  impresario mcp config cursor                  the same for one of them`

export function addMcp(program: Command, end: End): void {
  const load = () => import('./mcp.ts')
  const mcp = program
    .command('mcp')
    .description('connect an assistant to a server (Model Context Protocol over stdio)')
    .option('--print', 'print what to paste into the configuration of assistants')
    .addHelpText('after', MCP_HELP)
    .action(act(end, async (options: McpOptions) => (await load()).serveMcp(options)))
  mcp
    .command('config')
    .description('print what to paste into the configuration of assistants')
    .argument(
      '[assistant]',
      'only for this one: claude-code, claude-desktop, codex, cursor, gemini, vscode, windsurf, zed',
    )
    .addOption(new Option('--hide-token', 'print a placeholder in place of the token'))
    .action(
      act(end, async (options: McpConfigOptions, assistant: string | undefined) =>
        (await load()).printConfigs(assistant, options),
      ),
    )
}
