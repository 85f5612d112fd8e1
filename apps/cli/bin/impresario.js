#!/usr/bin/env node
// npm links a command at installation, when nothing is built yet: so this file is not built.
import { existsSync } from 'node:fs'
import process from 'node:process'

const program = new URL('../dist/main.js', import.meta.url)
if (existsSync(program)) {
  await import(program.href)
} else {
  process.stderr.write('✗ Impresario is not built yet.\n  Run "npm run build", or "npm start" for the demo.\n')
  process.exitCode = 1
}
