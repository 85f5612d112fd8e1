#!/usr/bin/env node
import { endProcess } from './ending.ts'
import { run } from './program.ts'

await endProcess(await run(process.argv))
