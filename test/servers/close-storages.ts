import { afterAll } from 'vitest'
import { closeTestStorages } from './test-storage.ts'

afterAll(closeTestStorages)
