#!/usr/bin/env node
// npm links a command at installation, when nothing is built yet: so this file is not built.
// oxlint-disable-next-line no-restricted-imports
await import('../dist/main.js')
