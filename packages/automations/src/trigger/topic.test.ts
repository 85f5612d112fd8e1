import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkTopic, topicPattern } from './topic.ts'

describe('[K-04] topics', () => {
  test.each([
    ['github.push', 'github.push', true],
    ['github.push', 'github.Push', false],
    ['github.*', 'github.push', true],
    ['github.*', 'github', false],
    ['github.*', 'github.push.main', false],
    ['*.push', 'gitlab.push', true],
    ['alerts.#', 'alerts', true],
    ['alerts.#', 'alerts.disk.full', true],
    ['alerts.#', 'alert.disk', false],
    ['#', 'a.b', true],
    ['a.*.c', 'a.b.c', true],
  ])('%s and %s: %s', (pattern, topic, expected) => {
    expect(topicPattern(pattern).matches(topic)).toBe(expected)
  })

  test.each(['', '.', 'a..b', 'a b', 'a.#.b', 'git*', 'ä', 'a'.repeat(201)])('%s is refused as a pattern', (source) => {
    expect(() => topicPattern(source)).toThrow(/is not a topic pattern/)
  })

  test.each(['', 'a.*', '#', 'a\nb'])('%s is refused as a topic', (topic) => {
    expect(() => checkTopic(topic)).toThrow(/is not a topic/)
  })

  test('every topic matches itself, and its own name with a wildcard in any place', () => {
    const name = fc.stringMatching(/^[a-z0-9_-]{1,8}$/)
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), fc.nat(), (names, at) => {
        const topic = checkTopic(names.join('.'))
        const wild = names.with(at % names.length, '*').join('.')
        expect([topic, wild, '#'].map((pattern) => topicPattern(pattern).matches(topic))).toEqual([true, true, true])
        expect(topicPattern(topic).isExact).toBe(true)
      }),
    )
  })
})
