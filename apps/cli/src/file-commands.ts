import { Option } from 'commander'
import type { Command } from 'commander'
import { act } from './action.ts'
import type { End } from './action.ts'
import { spanMs } from './arguments.ts'
import type { GlobalOptions } from './session.ts'

export function addFiles(program: Command, end: End): void {
  const load = () => import('./files.ts')
  const files = program.command('files').description('files of jobs')
  files
    .command('list <job> [prefix]', { isDefault: true })
    .description('list the files of a job')
    .action(act(end, async (options: GlobalOptions, job, prefix) => (await load()).listFiles(job, prefix, options)))
  files
    .command('put <job> <path>')
    .description('upload a file to a job')
    .option('--name <name>', 'its name in the job, such as in/report.pdf')
    .action(act(end, async (options: GlobalOptions, job, path) => (await load()).putFile(job, path, options)))
  files
    .command('get <job> <name>')
    .description('download a file of a job')
    .option('--output <path>', 'target path; - for standard output')
    .option('--continue', 'resume an interrupted download')
    .action(act(end, async (options: GlobalOptions, job, name) => (await load()).getFile(job, name, options)))
  files
    .command('link <job> <name>')
    .description('print a link that reads a file without a token')
    .addOption(new Option('--for <time>', 'how long it is good: 2h, 3d; a week without it').argParser(spanMs))
    .action(act(end, async (options: GlobalOptions, job, name) => (await load()).linkFile(job, name, options)))
  files
    .command('delete <job> <name>')
    .description('delete a file of a job')
    .action(act(end, async (options: GlobalOptions, job, name) => (await load()).deleteFile(job, name, options)))
}
