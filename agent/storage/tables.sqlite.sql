CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE api_keys (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	secret_hash TEXT NOT NULL, 
	scopes TEXT NOT NULL, 
	tools TEXT NOT NULL, 
	limits TEXT NOT NULL, 
	created_at FLOAT NOT NULL, 
	expires_at FLOAT, 
	revoked_at FLOAT, 
	last_used_at FLOAT, 
	used_tokens BIGINT DEFAULT '0' NOT NULL, 
	used_usd FLOAT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX api_keys_by_owner ON api_keys (owner);

CREATE TABLE key_reservations (
	id TEXT NOT NULL, 
	key_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	epoch INTEGER NOT NULL, 
	tokens BIGINT NOT NULL, 
	usd FLOAT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX key_reservations_by_key ON key_reservations (key_id);

CREATE TABLE idempotency (
	owner TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	status INTEGER NOT NULL, 
	headers TEXT NOT NULL, 
	body TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (owner, "key")
);

CREATE INDEX idempotency_by_time ON idempotency (at);

CREATE TABLE audit (
	id INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	owner TEXT NOT NULL, 
	principal TEXT NOT NULL, 
	action TEXT NOT NULL, 
	target TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX audit_by_time ON audit (at);

CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;

CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;

CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;

CREATE TABLE client_conversations (
	owner TEXT NOT NULL, 
	id TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	created FLOAT NOT NULL, 
	head TEXT, 
	head_at FLOAT, 
	PRIMARY KEY (owner, id)
);

CREATE TABLE client_items (
	id INTEGER NOT NULL, 
	owner TEXT NOT NULL, 
	conversation_id TEXT NOT NULL, 
	item_id TEXT NOT NULL, 
	data TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE UNIQUE INDEX client_items_by_conversation ON client_items (owner, conversation_id, item_id);

CREATE TABLE collections (
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	pipeline TEXT NOT NULL, 
	sources TEXT NOT NULL, 
	embedder TEXT NOT NULL, 
	status TEXT NOT NULL, 
	created FLOAT NOT NULL, 
	updated FLOAT NOT NULL, 
	PRIMARY KEY (owner, name)
);

CREATE TABLE documents (
	owner TEXT NOT NULL, 
	collection TEXT NOT NULL, 
	source TEXT NOT NULL, 
	document_id TEXT NOT NULL, 
	checksum TEXT NOT NULL, 
	data TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (owner, collection, source)
);

CREATE INDEX documents_by_checksum ON documents (owner, checksum);

CREATE INDEX documents_by_id ON documents (owner, document_id);

CREATE TABLE chunk_sets (
	id INTEGER NOT NULL, 
	owner TEXT NOT NULL, 
	collection TEXT NOT NULL, 
	changes BIGINT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE UNIQUE INDEX chunk_sets_by_owner ON chunk_sets (owner, collection);

CREATE TABLE vector_sets (
	name TEXT NOT NULL, 
	embedder TEXT NOT NULL, 
	dimension INTEGER NOT NULL, 
	generation TEXT NOT NULL, 
	added BIGINT DEFAULT '0' NOT NULL, 
	removed BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE vectors (
	name TEXT NOT NULL, 
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	seq BIGINT NOT NULL, 
	at FLOAT NOT NULL, 
	vector BLOB NOT NULL, 
	payload TEXT NOT NULL, 
	PRIMARY KEY (name, id)
);

CREATE INDEX vectors_by_owner ON vectors (name, owner, seq);

CREATE TABLE collection_vectors (
	owner TEXT NOT NULL, 
	collection TEXT NOT NULL, 
	serving TEXT NOT NULL, 
	remaking TEXT NOT NULL, 
	PRIMARY KEY (owner, collection)
);

CREATE TABLE ingestions (
	owner TEXT NOT NULL, 
	collection TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	until FLOAT NOT NULL, 
	pending TEXT NOT NULL, 
	PRIMARY KEY (owner, collection)
);

CREATE TABLE pending_passages (
	owner TEXT NOT NULL, 
	collection TEXT NOT NULL, 
	document_id TEXT NOT NULL, 
	amount INTEGER NOT NULL, 
	holder TEXT NOT NULL, 
	PRIMARY KEY (owner, collection, document_id)
);

CREATE TABLE housekeeping (
	name TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	until FLOAT NOT NULL, 
	done FLOAT NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE queue_workers (
	worker_id BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	queue TEXT NOT NULL, 
	slots INTEGER NOT NULL, 
	started FLOAT NOT NULL, 
	PRIMARY KEY (worker_id)
);

CREATE TABLE queue_tags (
	queue TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	tag BIGINT NOT NULL, 
	PRIMARY KEY (queue, owner)
);

CREATE INDEX queue_tags_by_tag ON queue_tags (queue, tag);

CREATE TABLE jobs (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	collection TEXT NOT NULL, 
	status TEXT NOT NULL, 
	request TEXT NOT NULL, 
	progress TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	worker TEXT NOT NULL, 
	until FLOAT NOT NULL, 
	created FLOAT NOT NULL, 
	updated FLOAT NOT NULL, 
	place TEXT, 
	walk TEXT, 
	batched BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX jobs_by_owner ON jobs (owner, created);

CREATE INDEX jobs_by_status ON jobs (status, until);

CREATE TABLE sources (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	request TEXT NOT NULL, 
	created FLOAT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX sources_by_owner ON sources (owner, created, id);

CREATE TABLE runs (
	run_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	room TEXT NOT NULL, 
	status TEXT NOT NULL, 
	hidden BOOLEAN DEFAULT 0 NOT NULL, 
	tainted BOOLEAN DEFAULT 0 NOT NULL, 
	title TEXT NOT NULL, 
	conversation_id TEXT, 
	epoch INTEGER NOT NULL, 
	last_seq INTEGER NOT NULL, 
	terminal BOOLEAN DEFAULT 0 NOT NULL, 
	worker TEXT, 
	lease_until FLOAT DEFAULT '0' NOT NULL, 
	created_at FLOAT NOT NULL, 
	updated_at FLOAT NOT NULL, 
	queue TEXT DEFAULT '' NOT NULL, 
	parent TEXT, 
	PRIMARY KEY (run_id)
);

CREATE INDEX runs_by_conversation ON runs (owner, conversation_id, created_at) WHERE conversation_id IS NOT NULL;

CREATE INDEX runs_by_owner ON runs (owner, created_at);

CREATE INDEX runs_by_time ON runs (created_at);

CREATE INDEX runs_ended ON runs (updated_at) WHERE terminal;

CREATE INDEX runs_unfinished ON runs (lease_until) WHERE terminal = 0;

CREATE TABLE blobs (
	checksum TEXT NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (checksum)
);

CREATE TABLE turns (
	id INTEGER NOT NULL, 
	owner TEXT NOT NULL, 
	conversation_id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	role TEXT NOT NULL, 
	text TEXT NOT NULL, 
	tainted BOOLEAN DEFAULT 0 NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX turns_by_conversation ON turns (owner, conversation_id, id);

CREATE UNIQUE INDEX turns_once ON turns (run_id, role);

CREATE TABLE schedules (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	work TEXT NOT NULL, 
	cron TEXT NOT NULL, 
	timezone TEXT NOT NULL, 
	overlap TEXT NOT NULL, 
	misfire TEXT NOT NULL, 
	webhook TEXT, 
	key_id TEXT, 
	enabled INTEGER NOT NULL, 
	stopped TEXT NOT NULL, 
	next_tick FLOAT, 
	held_until FLOAT DEFAULT '0' NOT NULL, 
	last_tick FLOAT, 
	last_run_id TEXT, 
	created FLOAT NOT NULL, 
	updated FLOAT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE UNIQUE INDEX schedules_by_name ON schedules (owner, name);

CREATE INDEX schedules_due ON schedules (next_tick) WHERE enabled = 1;

CREATE TABLE room_versions (
	room_id TEXT NOT NULL, 
	revision BIGINT NOT NULL, 
	data BLOB, 
	managed BOOLEAN DEFAULT 0 NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (room_id, revision)
);

CREATE TABLE prompts (
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	description TEXT NOT NULL, 
	by_whom TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (owner, name, version)
);

CREATE TABLE recipes (
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	staged TEXT, 
	applied TEXT, 
	created FLOAT NOT NULL, 
	updated FLOAT NOT NULL, 
	PRIMARY KEY (owner, name)
);

CREATE TABLE tool_versions (
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	code TEXT NOT NULL, 
	tests TEXT NOT NULL, 
	manifest TEXT NOT NULL, 
	review TEXT NOT NULL, 
	description TEXT NOT NULL, 
	warnings TEXT NOT NULL, 
	tier TEXT NOT NULL, 
	state TEXT NOT NULL, 
	parent INTEGER, 
	run_id TEXT NOT NULL, 
	author TEXT NOT NULL, 
	approved_by TEXT NOT NULL, 
	decision TEXT NOT NULL, 
	created_at FLOAT NOT NULL, 
	PRIMARY KEY (owner, name, version)
);

CREATE TABLE active_tools (
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	since FLOAT NOT NULL, 
	PRIMARY KEY (name)
);

CREATE TABLE mcp_pins (
	server TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	pins TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (server)
);

CREATE TABLE tasks (
	task_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	prompt TEXT NOT NULL, 
	context TEXT NOT NULL, 
	status TEXT NOT NULL, 
	created FLOAT NOT NULL, 
	updated FLOAT NOT NULL, 
	webhook TEXT, 
	PRIMARY KEY (task_id)
);

CREATE INDEX tasks_by_owner ON tasks (owner, created, task_id);

CREATE TABLE model_usage (
	run_id TEXT NOT NULL, 
	model TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	key_id TEXT NOT NULL, 
	room TEXT NOT NULL, 
	status TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	day INTEGER NOT NULL, 
	model_calls BIGINT NOT NULL, 
	prompt_tokens BIGINT NOT NULL, 
	completion_tokens BIGINT NOT NULL, 
	cached_tokens BIGINT NOT NULL, 
	reasoning_tokens BIGINT NOT NULL, 
	cost_usd FLOAT, 
	summed BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (run_id, model)
);

CREATE INDEX model_usage_by_owner ON model_usage (owner, at);

CREATE INDEX model_usage_by_time ON model_usage (at);

CREATE INDEX model_usage_unsummed ON model_usage (at) WHERE NOT summed;

CREATE TABLE usage_days (
	day INTEGER NOT NULL, 
	owner TEXT NOT NULL, 
	key_id TEXT NOT NULL, 
	room TEXT NOT NULL, 
	model TEXT NOT NULL, 
	runs BIGINT NOT NULL, 
	model_runs BIGINT NOT NULL, 
	model_calls BIGINT NOT NULL, 
	prompt_tokens BIGINT NOT NULL, 
	completion_tokens BIGINT NOT NULL, 
	cached_tokens BIGINT NOT NULL, 
	reasoning_tokens BIGINT NOT NULL, 
	cost_usd FLOAT, 
	PRIMARY KEY (day, owner, key_id, room, model)
);

CREATE TABLE webhook_deliveries (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	url TEXT NOT NULL, 
	secret_name TEXT, 
	state TEXT NOT NULL, 
	attempts INTEGER DEFAULT '0' NOT NULL, 
	next_attempt FLOAT NOT NULL, 
	last_status INTEGER, 
	last_error TEXT NOT NULL, 
	created FLOAT NOT NULL, 
	updated FLOAT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE INDEX webhook_deliveries_by_owner ON webhook_deliveries (owner, created, id);

CREATE INDEX webhook_deliveries_by_run ON webhook_deliveries (run_id);

CREATE INDEX webhook_deliveries_open ON webhook_deliveries (next_attempt) WHERE state = 'open';

CREATE TABLE chunks (
	seq INTEGER NOT NULL, 
	set_id INTEGER NOT NULL, 
	chunk_id TEXT NOT NULL, 
	document_id TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	title TEXT NOT NULL, 
	title_terms TEXT NOT NULL, 
	text_terms TEXT NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (seq), 
	FOREIGN KEY(set_id) REFERENCES chunk_sets (id) ON DELETE CASCADE
);

CREATE INDEX chunks_by_document ON chunks (set_id, document_id);

CREATE UNIQUE INDEX chunks_by_id ON chunks (set_id, chunk_id);

CREATE INDEX chunks_by_number ON chunks (set_id, seq);

CREATE TABLE job_batches (
	job_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	status TEXT NOT NULL, 
	place TEXT NOT NULL, 
	items TEXT NOT NULL, 
	result TEXT NOT NULL, 
	documents INTEGER NOT NULL, 
	attempts INTEGER NOT NULL, 
	worker TEXT NOT NULL, 
	until FLOAT NOT NULL, 
	updated FLOAT NOT NULL, 
	PRIMARY KEY (job_id, number), 
	FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);

CREATE INDEX job_batches_open ON job_batches (until) WHERE status IN ('queued', 'running');

CREATE TABLE agent_conversations (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	chat_id TEXT, 
	source_id TEXT, 
	collection TEXT, 
	status TEXT NOT NULL, 
	current_pipeline TEXT, 
	source_analysis TEXT, 
	validation TEXT, 
	applied TEXT, 
	job_id TEXT, 
	summary TEXT, 
	asked TEXT DEFAULT '[]' NOT NULL, 
	turns INTEGER DEFAULT '0' NOT NULL, 
	tainted INTEGER DEFAULT '0' NOT NULL, 
	run_id TEXT, 
	claimed FLOAT DEFAULT '0' NOT NULL, 
	model_calls BIGINT DEFAULT '0' NOT NULL, 
	prompt_tokens BIGINT DEFAULT '0' NOT NULL, 
	completion_tokens BIGINT DEFAULT '0' NOT NULL, 
	cost_usd FLOAT, 
	archived FLOAT, 
	created FLOAT NOT NULL, 
	updated FLOAT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE SET NULL
);

CREATE UNIQUE INDEX agent_conversations_by_chat ON agent_conversations (owner, chat_id);

CREATE INDEX agent_conversations_by_owner ON agent_conversations (owner, created, id);

CREATE INDEX agent_conversations_by_source ON agent_conversations (source_id);

CREATE INDEX agent_conversations_open ON agent_conversations (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE events (
	run_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	epoch INTEGER NOT NULL, 
	type TEXT NOT NULL, 
	v INTEGER NOT NULL, 
	step_id TEXT, 
	attempt INTEGER, 
	data TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (run_id, seq), 
	FOREIGN KEY(run_id) REFERENCES runs (run_id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE request_words (
	run_id TEXT NOT NULL, 
	words TEXT NOT NULL, 
	PRIMARY KEY (run_id), 
	FOREIGN KEY(run_id) REFERENCES runs (run_id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE signals (
	id INTEGER NOT NULL, 
	run_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	payload TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(run_id) REFERENCES runs (run_id) ON DELETE CASCADE
);

CREATE INDEX signals_by_run ON signals (run_id, id);

CREATE TABLE blob_references (
	run_id TEXT NOT NULL, 
	checksum TEXT NOT NULL, 
	PRIMARY KEY (run_id, checksum), 
	FOREIGN KEY(run_id) REFERENCES runs (run_id) ON DELETE CASCADE, 
	FOREIGN KEY(checksum) REFERENCES blobs (checksum)
)
 WITHOUT ROWID;

CREATE INDEX blob_references_by_checksum ON blob_references (checksum);

CREATE TABLE answer_digests (
	run_id TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	trusted BOOLEAN NOT NULL, 
	private BOOLEAN NOT NULL, 
	PRIMARY KEY (run_id, digest), 
	FOREIGN KEY(run_id) REFERENCES runs (run_id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX answer_digests_by_owner ON answer_digests (owner, digest);

CREATE TABLE model_prompts (
	id INTEGER NOT NULL, 
	run_id TEXT NOT NULL, 
	step_id TEXT, 
	purpose TEXT NOT NULL, 
	model TEXT NOT NULL, 
	messages TEXT NOT NULL, 
	reply TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(run_id) REFERENCES runs (run_id) ON DELETE CASCADE
);

CREATE INDEX model_prompts_by_run ON model_prompts (run_id, id);

CREATE INDEX model_prompts_by_time ON model_prompts (at);

CREATE TABLE schedule_ticks (
	schedule_id TEXT NOT NULL, 
	tick FLOAT NOT NULL, 
	owner TEXT NOT NULL, 
	origin TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	run_id TEXT, 
	detail TEXT NOT NULL, 
	missed INTEGER DEFAULT '0' NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (schedule_id, tick), 
	FOREIGN KEY(schedule_id) REFERENCES schedules (id) ON DELETE CASCADE
);

CREATE TABLE task_runs (
	run_id TEXT NOT NULL, 
	task_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	status TEXT NOT NULL, 
	ended INTEGER NOT NULL, 
	state TEXT DEFAULT 'null' NOT NULL, 
	"plan" TEXT DEFAULT 'null' NOT NULL, 
	tool_results TEXT DEFAULT 'null' NOT NULL, 
	verification TEXT DEFAULT 'null' NOT NULL, 
	created FLOAT NOT NULL, 
	updated FLOAT NOT NULL, 
	PRIMARY KEY (run_id), 
	FOREIGN KEY(task_id) REFERENCES tasks (task_id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX task_runs_by_task ON task_runs (task_id, number);

CREATE UNIQUE INDEX task_runs_open ON task_runs (task_id) WHERE ended = 0;

CREATE TABLE conversation_uncertainties (
	id TEXT NOT NULL, 
	conversation_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	origin TEXT NOT NULL, 
	severity TEXT NOT NULL, 
	message TEXT NOT NULL, 
	context TEXT NOT NULL, 
	resolved INTEGER DEFAULT '0' NOT NULL, 
	resolved_by TEXT, 
	resolver TEXT, 
	note TEXT, 
	resolved_at FLOAT, 
	created FLOAT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(conversation_id) REFERENCES agent_conversations (id) ON DELETE CASCADE
);

CREATE INDEX uncertainties_blocking_unresolved ON conversation_uncertainties (conversation_id, created, id) WHERE severity = 'blocking' AND resolved = 0;

CREATE INDEX uncertainties_by_conversation ON conversation_uncertainties (conversation_id, created, id);

