import { refused } from '../pipeline/problem.ts'

const TOPIC_CHARS_MAX = 200
const SEGMENT = /^[A-Za-z0-9_-]+$/

/** Which topics a trigger listens to. */
export interface TopicPattern {
  readonly source: string
  /** Whether it has no wildcard: it then matches one topic only. */
  readonly isExact: boolean
  matches(topic: string): boolean
}

/** Checks the topic of an event: names of letters, digits, `_` and `-`, joined by dots. */
export function checkTopic(topic: string): string {
  if (topic.length > TOPIC_CHARS_MAX || !topic.split('.').every((segment) => SEGMENT.test(segment))) {
    throw refused(
      'topic',
      `"${topic.slice(0, 100)}" is not a topic. Write names of letters, digits, "_" and "-" joined by dots, such as github.push.`,
    )
  }
  return topic
}

/** Reads a pattern: `github.push`, `github.*` for one name in that place, `alerts.#` for any number of names at the end. */
export function topicPattern(source: string): TopicPattern {
  const segments = source.split('.')
  const isWhole = segments.every(
    (segment, at) => SEGMENT.test(segment) || segment === '*' || (segment === '#' && at === segments.length - 1),
  )
  if (source.length > TOPIC_CHARS_MAX || !isWhole) {
    throw refused(
      'topic',
      `"${source.slice(0, 100)}" is not a topic pattern. Write github.push, github.* for one name, or github.# for all below.`,
    )
  }
  return {
    source,
    isExact: !segments.includes('*') && !segments.includes('#'),
    matches: (topic) => isMatch(segments, topic),
  }
}

function isMatch(pattern: readonly string[], topic: string): boolean {
  const names = topic.split('.')
  const isOpen = pattern.at(-1) === '#'
  const fixed = isOpen ? pattern.slice(0, -1) : pattern
  if (isOpen ? names.length < fixed.length : names.length !== fixed.length) return false
  return fixed.every((segment, at) => segment === '*' || segment === names[at])
}
