// A print shop with everything that an orchestrator can do, in one small story that ends by itself:
//
//   npm run showcase
//
// oxlint-disable no-console -- this is a program for a terminal
import { reportLines } from './report.ts'
import { runShowcase } from './showcase.ts'

const findings = await runShowcase((line) => console.log(line))
console.log()
for (const line of reportLines(findings)) console.log(line)
