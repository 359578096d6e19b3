import type { Lead as Words, LeadPiece } from '../api/views.ts';
import { Link } from '../router/Link.tsx';
import { Told } from './Told.tsx';

/** The sentence that opens a page; what comes next is paler. The server made both. */
export function Lead({ lead }: { lead: Words }) {
  return (
    <p className="lead">
      <Pieces pieces={lead.first} />
      {lead.then.length > 0 && (
        <>
          {' '}
          <span className="dim">
            <Pieces pieces={lead.then} />
          </span>
        </>
      )}
    </p>
  );
}

/** A sentence, with links to the rows behind its numbers. */
export function Pieces({ pieces }: { pieces: readonly LeadPiece[] }) {
  return pieces.map((piece, index) =>
    piece.to ? (
      <Link key={index} to={piece.to} className="q">
        <Told text={piece.text} />
      </Link>
    ) : (
      <span key={index}>
        <Told text={piece.text} />
      </span>
    ),
  );
}
