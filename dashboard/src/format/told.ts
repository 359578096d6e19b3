import { clock } from './moment.ts';

const MOMENT = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?Z/g;

/** The planner's sentence with its moments in the reader's own zone: "from 20:49 on". */
export function told(text: string, now: number): string {
  return text.replace(MOMENT, (moment) => {
    const at = Date.parse(moment) / 1000;
    return Number.isNaN(at) ? moment : clock(at, now);
  });
}
