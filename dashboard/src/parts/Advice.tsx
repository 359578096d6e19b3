import type { AdviceRow } from '../api/views.ts';
import { Card } from './Card.tsx';
import { Command } from './Copy.tsx';
import { Age } from './Time.tsx';

/** What to change about a job, and the line that does it. */
export function Advice({ advice }: { advice: AdviceRow }) {
  return (
    <Card
      className="warn"
      title={advice.rule}
      about={
        advice.since !== null && (
          <>
            for <Age at={advice.since} />
          </>
        )
      }
    >
      <p>{advice.message}</p>
      {advice.command && <Command line={advice.command} />}
    </Card>
  );
}
