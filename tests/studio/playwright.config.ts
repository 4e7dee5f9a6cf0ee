import { defineConfig } from '@playwright/test'

// Which files: the tests, or with STUDIO_RUN=measure or =screens one of the two that are run by hand.
const testMatch = process.env.STUDIO_RUN ? `${process.env.STUDIO_RUN}.ts` : '*.spec.ts'

// One worker: the model and the browser share the cores of a small machine. Time-outs are for hangs, not for slowness.
export default defineConfig({
  testDir: '.',
  testMatch,
  outputDir: '../results',
  workers: 1,
  retries: 0,
  timeout: 120_000,
  expect: { timeout: 60_000 },
  reporter: 'list',
  use: {
    actionTimeout: 60_000,
    navigationTimeout: 60_000,
    viewport: { width: 1280, height: 800 },
    locale: 'en-GB',
    colorScheme: 'light',
    serviceWorkers: 'block', // a test could not answer for the server otherwise; offline.spec.ts allows them
    launchOptions: {
      executablePath: process.env.CHROMIUM,
      args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
    },
  },
})
