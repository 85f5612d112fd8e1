import type { Command, Option } from 'commander'
import { EXIT } from './failure.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/** One command with what can follow it, as its path has it: `jobs start`. */
interface CompletionPoint {
  readonly path: string
  readonly words: readonly { readonly word: string; readonly about: string }[]
  /** What can follow an option. */
  readonly choices: readonly { readonly option: string; readonly of: readonly string[] }[]
}

/** Prints a script for the shell, made from the commands themselves, so that it knows all of them. */
export function printCompletion(program: Command, shell: Shell): number {
  const places = placesOf(program, '')
  const script = { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](places)
  process.stdout.write(script)
  return EXIT.ok
}

function placesOf(command: Command, path: string): readonly CompletionPoint[] {
  const options = optionsOf(command)
  const words = [
    ...command.commands.map((one) => ({ word: one.name(), about: one.description() })),
    ...command.registeredArguments.flatMap(({ argChoices = [], description }) =>
      argChoices.map((word) => ({ word, about: description })),
    ),
    ...options.map(({ long, description }) => ({ word: long ?? '', about: description })),
  ]
  const choices = options.flatMap(({ long, argChoices }) =>
    argChoices === undefined || long === undefined ? [] : [{ option: long, of: argChoices }],
  )
  const below = command.commands.flatMap((one) => placesOf(one, path === '' ? one.name() : `${path} ${one.name()}`))
  return [{ path, words, choices }, ...below]
}

function optionsOf(command: Command): readonly Option[] {
  const all = new Map<string, Option>()
  for (let one: Command | null = command; one !== null; one = one.parent) {
    for (const option of one.options) all.set(option.long ?? '', option)
  }
  return [...all.values()].filter(({ long }) => typeof long === 'string')
}

/** A text inside of single quotes, for any of the shells. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** The path so far is made of the words that are commands: options and what they take do not count. */
const BASH_HEAD = `# impresario: completion for bash. Use it with: source <(impresario completion bash)
_impresario() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path='' word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
`

function bashScript(places: readonly CompletionPoint[]): string {
  const known = places.filter(({ path }) => path !== '').map(({ path }) => `${parentOf(path)} ${lastOf(path)}`)
  const paths = `      ${known.map(quoted).join('|')}) path="\${path:+$path }$word" ;;\n    esac\n  done\n`
  const choices = places.flatMap(({ path, choices: all }) =>
    all.map(({ option, of }) => `    ${quoted(`${path} ${option}`)}) words=${quoted(of.join(' '))} ;;\n`),
  )
  const words = places.map(
    (place) => `    ${quoted(place.path)}) words=${quoted(place.words.map(({ word }) => word).join(' '))} ;;\n`,
  )
  return [
    BASH_HEAD,
    paths,
    `  case "$path $previous" in\n`,
    ...choices,
    `  esac\n  [ -n "$words" ] || case "$path" in\n`,
    ...words,
    '  esac\n',
    `  COMPREPLY=($(compgen -W "$words" -- "$current"))\n}\n`,
    'complete -o default -F _impresario impresario\n',
  ].join('')
}

function parentOf(path: string): string {
  return path.includes(' ') ? path.slice(0, path.lastIndexOf(' ')) : ''
}

function lastOf(path: string): string {
  return path.slice(path.lastIndexOf(' ') + 1)
}

function zshScript(places: readonly CompletionPoint[]): string {
  const known = places.filter(({ path }) => path !== '').map(({ path }) => `${parentOf(path)} ${lastOf(path)}`)
  const described = (place: CompletionPoint): string =>
    place.words.map(({ word, about }) => quoted(`${word.replaceAll(':', String.raw`\:`)}:${about}`)).join(' ')
  return [
    '#compdef impresario\n# impresario: completion for zsh. Use it with: source <(impresario completion zsh)\n',
    `_impresario() {\n  local path_='' word\n  local -a found\n  for word in "\${(@)words[2,CURRENT-1]}"; do\n    case "$path_ $word" in\n`,
    `      ${known.map(quoted).join('|')}) path_="\${path_:+$path_ }$word" ;;\n    esac\n  done\n`,
    `  case "$path_ \${words[CURRENT-1]}" in\n`,
    ...places.flatMap(({ path, choices }) =>
      choices.map(
        ({ option, of }) => `    ${quoted(`${path} ${option}`)}) compadd ${of.map(quoted).join(' ')}; return ;;\n`,
      ),
    ),
    `  esac\n  case "$path_" in\n`,
    ...places.map((place) => `    ${quoted(place.path)}) found=(${described(place)}) ;;\n`),
    `  esac\n  _describe impresario found || _files\n}\ncompdef _impresario impresario\n`,
  ].join('')
}

function fishScript(places: readonly CompletionPoint[]): string {
  const lines = places.flatMap(({ path, words, choices }) => {
    const when = quoted(`__impresario_at ${quoted(path)}`)
    return [
      ...words.map(({ word, about }) =>
        word.startsWith('--')
          ? `complete -c impresario -n ${when} -l ${word.slice(2)} -d ${quoted(about)}`
          : `complete -c impresario -f -n ${when} -a ${quoted(word)} -d ${quoted(about)}`,
      ),
      ...choices.map(
        ({ option, of }) => `complete -c impresario -x -n ${when} -l ${option.slice(2)} -a ${quoted(of.join(' '))}`,
      ),
    ]
  })
  const known = places.filter(({ path }) => path !== '').map(({ path }) => quoted(path))
  return [
    '# impresario: completion for fish. Use it with: impresario completion fish | source',
    'function __impresario_at',
    "  set -l path ''",
    '  for word in (commandline -opc)[2..-1]',
    '    set -l next (string trim -- "$path $word")',
    `    contains -- $next ${known.join(' ')}; and set path $next`,
    '  end',
    '  test "$path" = "$argv[1]"',
    'end',
    ...lines,
    '',
  ].join('\n')
}
