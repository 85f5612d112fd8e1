#!/usr/bin/env node
// npm links a command at installation, when nothing is built yet: so this file is not built.
import '../dist/main.js'
