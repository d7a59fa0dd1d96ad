"""specdemo: one prompt, two vLLM engines, standard and speculative, side by side, measured and checked.

The map, in the order in which data flows. A run is an append-only list of events; everything else is a view of it.

errors.py                   the error tree, drawn, then declared
__main__.py                 the specdemo program
settings/                   from SPECDEMO_*, .env, TOML and flags to one frozen value
  schema.py                 every setting: name, type, default, meaning
  layers.py                 the sources in order of force; where each value came from
  describe.py               the settings as a list; README's table
core/                       the data path: pure, standard library only
  wording_engines.py        what it says of engines
  wording_store.py          those about kept runs
  wording_wire.py           what is said of connections
  wording.py                what specdemo says of a run, in English, by key
  sentences.py              a sentence → its key and values, for other languages
  prompt.py                 what is asked: one prompt, every sampling field spelled out
  engine.py                 what to run, how it is doing, what it says of itself
  choice.py                 which speculation a visitor may choose, and its cost
  events.py                 all that an engine can say
  run.py                    a run: header, log, probe
  outcome.py                one side's events, gathered
  metrics.py                one side's numbers, event by event
  meters.py                 a meter as the engine's facts make it
  rates.py                  the live tokens/s
  acceptance.py             drafts accepted: exact, by counters, or a range
  quality.py                cross-checks; a violation becomes a note
  absent.py                 why a number is absent
  odd.py                    figures that cannot be right: absent too
  masking.py                logins and keys inside addresses, kept from sight
  provenance.py             which token was a draft, which the target's own
  comparability.py          is this pair comparable?
  compare.py                where two outputs part
  gap.py                    how far apart the two candidates are
  tolerance.py              how close is a near tie, by number format
  verdict.py                identical, near tie, different, or no claim
  speedup.py                measured ratios, never clamped
  theory.py                 the textbook beside the measurement
  gtest.py                  does one acceptance chance describe the run?
  cause.py                  why prediction and measurement differ
  results.py                the values that all of these produce
  assess.py                 a record → everything that is said about it
  glossary.py               name, formula and meaning of every number
  contract.py               the document of race --json
  codec.py                  a run as one JSON document, and back
  packing.py                events in few bytes
  frames.py                 a run as the browser receives it
engines/                    everything that knows vLLM
  models.py                 where a model comes from
  environment.py            the engine environment, versions, GPUs
  methods.py                what speculative_config knows
  speculation.py            preset or JSON → validated speculation
  drafts.py                 can it work with this target, device, version?
  shipped.py                the draft model that comes with it
  flags.py                  which flags may be passed through
  cores.py                  CPU cores for each engine
  footprint.py              memory that a pair will need
  profiles.py               named ways to run a pair
  command.py                EngineSpec → argument list and environment
  ports.py                  free loopback ports
  process.py                one child: start, log, stop its whole group
  logview.py                what a log says while an engine loads
  diagnosis.py              the last words of a dead engine → one sentence
  ledger.py                 what outlives a crash
  orphans.py                engines that a crash left behind
  backoff.py                when a dead engine is started again
  slot.py                   one side: wanted state and child, brought together
  supervisor.py             what should be running
  attached.py               two engines that somebody else runs
  probe.py                  does it live, which models; the warm-up
  safety.py                 which requests would harm an engine
  busy.py                   how busy other programs keep the cores
  url.py                    base URLs as people write them
  limits.py                 how long to wait, how much to accept
  session.py                HTTP to one engine: key, certificate, limits, masking
  link.py                   one connection: bytes, stamped when they arrive
  transport.py              HTTP over such connections, for httpx
  http_errors.py            foreign errors → our tree
  requests.py               prompts → request bodies
  answers.py                small JSON replies → values
  facts.py                  what an engine says of itself
  arrivals.py               is what we measure what the engine did?
  token_text.py             the text of each single token
  refusals.py               the body of a reply that refuses
  notes.py                  how a stream's troubles are told
  heard.py                  what a stream's bytes say
  stream.py                 one streamed request as events
  counters.py               /metrics during a stream
  client.py                 one engine, ready to be asked
engines/wire/               decoders without I/O
  http1.py                  replies: head and framing
  encoding.py               content codings
  sse.py                    bytes in any cut → server-sent events
  fields.py                 JSON from strangers, read without trust
  logprobs.py               log-probabilities of chat and plain answers
  ordinary.py               the usual chunk, decoded in one strict step
  problems.py               errors in every shape
  reported.py               what the last chunk tells of drafting and time
  completions.py            payloads → events
  exposition.py             the text of /metrics → counters
engines/embedded/           the small model that comes with it
  source.py                 which model, where from, which licence
  child.py                  one helper program, run to its end
  cache.py                  a folder that is whole or absent
  convert.py                GGUF → model folder, by the engine's Python
  build.py                  fetch, check, convert, verify, rename
  __main__.py               what make setup runs
engines/plugin/             loaded by vLLM itself
  specdemo_cpu_repair.py    sampling with speculation on the CPU, repaired
bench/                      benchmarks and sampling validation: pure but for reading files
  assets.py                 where shipped prompts and texts are
  workloads.py              the shipped workloads
  dataset_rows.py           one row of an uploaded file → a prompt, or why not
  dataset_lines.py          its lines, within limits
  dataset_json.py           its JSON, value by value
  dataset_csv.py            its CSV
  datasets.py               a user's file → prompts, every refused line told
  prompts.py                a prompt and its workload
  plan.py                   prompts × repeats × load levels
  schedule.py               the order: quads of blocks, from one seed
  estimate.py               how long a plan will take
  sample.py                 one request as kept
  record.py                 a whole benchmark as kept
  distributions.py          quantiles and tails
  statistics.py             paired comparison with intervals
  arms.py                   one arm's plain numbers
  reliability.py            what failed, level by level
  acceptance.py             over many requests, and the speedup it predicts
  identity.py               classes, controls, and the bound of the sample
  summary.py                samples → results
  sweep.py                  draft lengths and methods side by side
  walk.py                   a recorded run, step by step
  claims.py                 what the article claims, beside recorded runs
  gate.py                   yes or no for CI
  jsonable.py               results → strict JSON
bench/sampling/             do both engines draw from the same distribution?
  settings.py               what is tested, and the seeds
  drafts.py                 the drafts that must have been made
  duplicates.py             equal sequences counted first
  processed.py              the distribution a token must come from
  scoring.py                the primary test
  tree.py                   the fallback without scores
  verdict.py                evidence → consistent, differs, or not enough
  result.py                 a validation as kept
bench/report/               a benchmark as a document
  numbers.py                numbers as cells
  words.py                  its texts, English and Chinese
  blocks.py                 what it is made of
  charts.py                 drawings as SVG text
  load.py                   up to which load the gain is clear
  evidence.py               identity, sampling, claims, method, limits
  content.py                a record → the document, verdict first
  contract.py               the document of bench --json
  compare.py                two benchmarks side by side
  sweep_page.py             a sweep as a document
  html.py                   as one HTML file
  markdown.py               as Markdown
  csv_tables.py             as CSV
runs/                       use cases over Protocols
  ports.py                  what they need from the outside world
  request.py                can this prompt be sent at all?
  preflight.py              facts, prompt tokens, whether to send it
  warmup.py                 the same for both sides, in no number
  streams.py                closing a stream for sure
  log.py                    append-only, bounded, any number of followers
  race.py                   one prompt on both engines: race, measure, control
  probe.py                  candidates at the split; the re-check
  gate.py                   whose turn it is on the engines
  registry.py               all runs: start, look up, stop, forget
  checked.py                JSON of anyone → exact shapes, sound numbers
  stored.py                 runs on disk, read with suspicion
  side_by_side.py           two runs: numbers, settings that differ, verdicts
  bench_block.py            one arm's turn of a benchmark
  bench_probe.py            the differences, asked about afterwards
  bench_store.py            benchmarks on disk, flushed as they happen
  benchmark.py              a plan against two engines
  validate.py               draw from both, score, judge
  validation_store.py       validations on disk
  kept.py                   kept results by name
  jobs.py                   long work, one at a time, owned
  tuner.py                  one speculation after another
  bench_job.py              a benchmark or a sweep as a job
  validation_job.py         a validation as a job; the pace of engines
store/                      runs that last: SQLite, or PostgreSQL by URL
  tables.py                 rows for lists, documents in parts
  database.py               open, migrate under a lock, faults in plain words
  entry.py                  what a list says of a kept run
  body.py                   a document in compressed parts, and back
  runs.py                   begin, append, list, share, delete, make room
  keeper.py                 runs into the store while they happen
store/migrations/           what brings a database up to date
  env.py                    Alembic's steps on our connection
store/migrations/versions/  one file a step
  v0001_runs.py             runs and their parts
doctor/                     what was found, what is not right, the mend
  probes.py                 looks at the outside world
  checks.py                 what they saw → findings
  report.py                 a finding, and all of them
compose/                    where a concrete engine meets a run
  deployment.py             managed, attached, running already, or replay
  switch.py                 another method for the speculative engine
  managed.py                two engines of our own
  attached.py               two addresses
  running.py                the engines of a running serve
  keeping.py                the run store as the settings ask for it
  texts.py                  where texts of single tokens come from
ui/                         the page
  assets.py                 the only reader of assets/
  i18n.py                   words in English and Chinese
  theme.py                  colours and type
  chips.py                  example prompts
  recordings.py             recorded real runs
  library.py                whose a run is, who may see it, where it is
  services.py               what the page needs from the rest
  feed.py                   one run as server-sent events
  panes.py                  the page's own components
  visitors.py               who asks: signed cookie, trusted proxies
  quota.py                  how much one visitor may ask for
  telemetry.py              figures of the page itself, for Prometheus
  asked.py                  what a request says of itself
  form.py                   the race's form, and the plan that it asks for
  handlers.py               what happens on a click
  presence.py               a run ends with the page that started it
  plots.py                  results as Vega-Lite
  results.py                kept results, read once
  uploads.py                a visitor's file, previewed
  file_box.py               shipped prompts or a file
  bench_form.py             the form → a benchmark's plan
  bench_view.py             a benchmark as markup
  bench_desk.py             what happens in the Benchmark tab
  tab_bench.py              its layout and wiring
  validate_form.py          the form → a validation's plan
  validate_view.py          a validation as markup
  validate_desk.py          what happens in the Validate tab
  tab_validate.py           its layout and wiring
  tabs.py                   which tabs a page has
  bench_routes.py           results as files
  page.py                   the layout, top to bottom, then the wiring
  tab_runs.py               the Runs tab
  routes.py                 routes beside Gradio's
  run_routes.py             a run's frames and documents; list, share, import
  switching.py              the route that changes the method
  how.py                    what the How-it-works tab shows
  tab_how.py                the How-it-works tab
  surface.py                what may be asked for at all
  door.py                   who may come in, under which name
  guard.py                  what stands in front of every request
  front.py                  how the page meets the outside world
  sessions.py               closed pages are forgotten
  memory.py                 what is freed goes back
  server.py                 the web application
cli/                        the commands
  flags.py                  flags that every command has
  logs.py                   stderr, without secrets
  output.py                 results to stdout; strict JSON
  loop.py                   Ctrl-C and SIGTERM
  progress.py               waiting for engines
  prompts.py                where a prompt comes from
  race.py                   specdemo race
  watch.py                  a run as it happens
  table.py                  numbers and verdict as text
  serve.py                  specdemo serve
  bench_common.py           what bench, validate and gate share
  document.py               a report in the terminal
  together.py               flags and files checked first
  bench.py                  specdemo bench
  sweep.py                  specdemo bench --sweep-k
  validate.py               specdemo validate
  gate.py                   specdemo gate
  report.py                 specdemo report
  page.py                   the page with its engines
  page_front.py             sign-in, limits, proxies, a slow end
  page_jobs.py              and the long work on them
  doctor.py                 specdemo doctor
  config.py                 specdemo config
"""

__version__ = "0.1.0"
