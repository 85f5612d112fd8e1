import type { Command } from 'commander'
import { act } from './action.ts'
import type { End } from './action.ts'
import { amount, count } from './arguments.ts'
import type { AddOptions, DocumentOptions, SearchCommandOptions, WatchOptions } from './documents.ts'

const DATA = 'where the index is kept'
const DATA_DEFAULT = './impresario-documents'

/** The documents app, without a server: everything is in one directory. */
export function addDocuments(program: Command, end: End): void {
  const group = program.command('documents').description('watch folders, index documents and search them')
  const withData = (command: Command): Command => command.option('--data <directory>', DATA, DATA_DEFAULT)
  withData(group.command('add <path...>'))
    .description('index files or folders, and exit when all are searchable')
    .option('--config <file>', 'limits, retries and rules, in YAML')
    .action(act<AddOptions, [string[]]>(end, async (options, paths) => (await commands()).add(paths, options)))
  withData(group.command('search <words...>'))
    .description('find documents: words, "a phrase", -not, begin*, name:, title:, type:, path:, date:')
    .option('--limit <count>', 'maximum number of hits, up to 100', count, 10)
    .option('--offset <count>', 'hits to leave out, for the next page', amount, 0)
    .action(
      act<SearchCommandOptions, [string[]]>(end, async (options, words) => (await commands()).search(words, options)),
    )
  withData(group.command('watch [folder...]'))
    .description('keep the index of folders up to date until stopped')
    .option('--config <file>', 'folders, limits, retries and rules, in YAML')
    .action(act<WatchOptions, [string[]]>(end, async (options, folders) => (await commands()).watch(folders, options)))
  withData(group.command('status [path]'))
    .description('what is indexed, what failed and why')
    .option('--failed', 'only files that failed')
    .action(
      act<StatusOptions, [string | undefined]>(end, async (options, path) => (await commands()).status(path, options)),
    )
  withData(group.command('retry [path]'))
    .description('read failed files again: all, one, or those in a folder')
    .action(
      act<DocumentOptions, [string | undefined]>(end, async (options, path) => (await commands()).retry(path, options)),
    )
  withData(group.command('reindex'))
    .description('read all files again')
    .action(act<DocumentOptions, []>(end, async (options) => (await commands()).reindex(options)))
}

interface StatusOptions extends DocumentOptions {
  readonly failed?: boolean
}

/** Loaded when a command is called: parsers and databases are not for everyone. */
const commands = () => import('./documents.ts')
