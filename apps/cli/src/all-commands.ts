import { Argument } from 'commander'
import type { Command } from 'commander'
import { act } from './action.ts'
import type { End } from './action.ts'
import { addAgents, addAutomations, addPublishedEvents, addRuns, addToolsAndAudit } from './automation-commands.ts'
import { printCompletion, SHELLS } from './completion.ts'
import { addDocuments } from './document-commands.ts'
import { addHistory } from './event-commands.ts'
import { addFiles } from './file-commands.ts'
import { addJobs, addQuarantine } from './job-commands.ts'
import { addMcp } from './mcp-commands.ts'
import type { OpenOptions } from './open.ts'
import { addPreview } from './preview-command.ts'
import { addAccount, addCatalogue, addMigrate, addSchedules, addServers, addWebhooks } from './server-commands.ts'

/** Every command of the program. */
export function addAll(program: Command, end: End): void {
  addServers(program, end)
  addMigrate(program, end)
  addJobs(program, end)
  addHistory(program, end)
  addFiles(program, end)
  addQuarantine(program, end)
  addCatalogue(program, end)
  addSchedules(program, end)
  addAutomations(program, end)
  addRuns(program, end)
  addPublishedEvents(program, end)
  addAgents(program, end)
  addToolsAndAudit(program, end)
  addPreview(program, end)
  addWebhooks(program, end)
  addAccount(program, end)
  addDocuments(program, end)
  addMcp(program, end)
  addOpen(program, end)
  addCompletion(program, end)
}

function addOpen(program: Command, end: End): void {
  program
    .command('open [job]')
    .description('open the dashboard in a browser, signed in')
    .option('--no-browser', 'only print the link')
    .action(
      act(end, async (options: OpenOptions, job: string | undefined) =>
        (await import('./open.ts')).openDashboard(job, options),
      ),
    )
}

function addCompletion(program: Command, end: End): void {
  program
    .command('completion')
    .description('print the completion script for bash, zsh or fish')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', COMPLETION_HELP)
    .action((shell: (typeof SHELLS)[number]) => end(printCompletion(program, shell)))
}

const COMPLETION_HELP = `
  source <(impresario completion bash)                    in ~/.bashrc
  source <(impresario completion zsh)                     in ~/.zshrc, after compinit
  impresario completion fish | source                     in ~/.config/fish/config.fish`
