import { expect, test } from 'vitest'
import { printed } from './examples.fixture.ts'

test('[E-07] server, worker and client in one file greet Ada', async () => {
  expect(await printed(() => import('./02-hello.ts'))).toEqual(['Hello, Ada!'])
})
