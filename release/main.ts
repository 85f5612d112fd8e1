// Builds the tarball that users install: npm run pack [-- <directory>]
import { join, resolve } from 'node:path'
import process from 'node:process'
import { pack } from './pack.ts'

const root = join(import.meta.dirname, '..')
const tarball = pack(root, resolve(process.argv[2] ?? join(root, 'dist')))
process.stdout.write(`${tarball}\n`)
