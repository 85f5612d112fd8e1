#!/usr/bin/env node
import { endProcess, endWithReader } from './ending.ts'
import { run } from './program.ts'

endWithReader(process.argv[2])
await endProcess(await run(process.argv))
