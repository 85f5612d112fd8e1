import { expect, test } from 'vitest'
import { ApiError } from '../data/api-error.ts'
import { en } from './en.ts'
import { es } from './es.ts'
import { refusalWords } from './refusal-words.ts'
import { ru } from './ru.ts'
import { translator } from './translate.ts'

test('[M-07] a refusal is told in the language of the page, with what the server said beneath', () => {
  const refusal = new ApiError(403, 'FORBIDDEN', 'Only an admin may do this.')
  const detail = 'Only an admin may do this.'
  expect(refusalWords(translator('ru', ru), refusal)).toEqual({ title: 'Ваша роль этого не позволяет.', detail })
  expect(refusalWords(translator('es', es), refusal)).toEqual({ title: 'Su rol no lo permite.', detail })
  expect(refusalWords(translator('en', en), refusal)).toEqual({ title: 'Your role does not permit this.', detail })
})

test('[M-07] what has no words is shown as it was said', () => {
  const t = translator('ru', ru)
  const newer = new ApiError(418, 'TEAPOT', 'This is a teapot.')
  expect(refusalWords(t, newer)).toEqual({ title: 'This is a teapot.', detail: undefined })
  expect(refusalWords(t, new ApiError(502, 'constructor', 'Bad Gateway')).title).toBe('Bad Gateway')
  expect(refusalWords(t, new Error('own words')).title).toBe('own words')
  expect(refusalWords(t, 'text').title).toBe('text')
  const away = refusalWords(t, new ApiError(0, 'UNREACHABLE', 'The server cannot be reached.'))
  expect(away).toEqual({ title: ru['common.unreachable'], detail: undefined })
})
