import { type ReactNode, useId } from 'react';

interface Props {
  title: ReactNode;
  about?: ReactNode;
  more?: ReactNode;
  className?: string;
  children: ReactNode;
}

/** A part of a page, under its heading. */
export function Card({ title, about, more, className = '', children }: Props) {
  const id = useId();
  return (
    <section className={`card ${className}`} aria-labelledby={id}>
      <h2>
        <span id={id}>{title}</span>
        {about !== undefined && <small>{about}</small>}
        {more !== undefined && <span className="more">{more}</span>}
      </h2>
      {children}
    </section>
  );
}
