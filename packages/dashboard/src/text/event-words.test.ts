import { expect, test } from 'vitest'
import { auditWords, eventWords } from './event-words.ts'
import { ru } from './ru.ts'
import { translator } from './translate.ts'

test('[M-07] events are said in the words of the language; one of a newer server as it is', () => {
  const t = translator('ru', ru)
  expect(eventWords(t, 'task_finished')).toBe('задача выполнена')
  expect(eventWords(t, 'moon_landed')).toBe('moon landed')
})

test('[M-07] so is what the audit log tells', () => {
  const t = translator('ru', ru)
  expect(auditWords(t, 'automation.paused')).toBe('автоматизация приостановлена')
  expect(auditWords(t, 'moon.was_landed_on')).toBe('moon.was landed on')
})
