import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import type { Page } from '@playwright/test';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Result {
  id: string;
  nodes: { target: unknown[]; failureSummary: string }[];
}

/** What axe has against a page, a line each. It is put in by the debugger: the page's policy stays. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate<Result[]>('axe.run().then((result) => result.violations)');
  return found.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${JSON.stringify(node.target)} ${node.failureSummary}`),
  );
}
