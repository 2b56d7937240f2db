BEGIN TRANSACTION;
CREATE TABLE concepts (
	namespace INTEGER NOT NULL, 
	number BIGINT NOT NULL, 
	"key" TEXT NOT NULL, 
	surface TEXT NOT NULL, 
	PRIMARY KEY (namespace, number), 
	CONSTRAINT concepts_by_key UNIQUE (namespace, "key"), 
	FOREIGN KEY(namespace) REFERENCES namespaces (number)
)
 WITHOUT ROWID

;
INSERT INTO "concepts" VALUES(1,0,'puppy','a puppy');
INSERT INTO "concepts" VALUES(1,1,'adopt','adopted');
INSERT INTO "concepts" VALUES(1,2,'rex','Rex');
INSERT INTO "concepts" VALUES(1,3,'pet','pet');
INSERT INTO "concepts" VALUES(2,0,'canoe','canoe');
CREATE TABLE entries (
	namespace INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	id TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	assimilated BOOLEAN NOT NULL, 
	text TEXT NOT NULL, 
	speaker TEXT, 
	session TEXT, 
	caption TEXT, 
	occurred_at TEXT, 
	metadata TEXT, 
	PRIMARY KEY (namespace, seq), 
	CONSTRAINT entries_by_id UNIQUE (namespace, id), 
	FOREIGN KEY(namespace) REFERENCES namespaces (number)
);
INSERT INTO "entries" VALUES(1,0,'1','f5e55d00b7e201461cd083adeb3d91b63b80ed54f48820efce87285b21b060ac',1,'I adopted a puppy','Anna','s',NULL,'2023-05-08T13:56:00',NULL);
INSERT INTO "entries" VALUES(1,1,'2','5005dc24b52efc527ae4f8f5c417373c301b506f9cdfc53cc5e2f4f884732804',0,'Rex the puppy barks?',NULL,NULL,NULL,NULL,'{"mood": ["glad", 1]}');
INSERT INTO "entries" VALUES(2,0,'1','47efd6d12d200954e4a606e83f4e05d16c65e401464549efb21aa1886403571d',1,'A canoe',NULL,NULL,'a lake',NULL,NULL);
CREATE TABLE links (
	namespace INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	concept BIGINT NOT NULL, 
	weight DOUBLE NOT NULL, 
	origin SMALLINT NOT NULL, 
	surface TEXT, 
	PRIMARY KEY (namespace, seq, concept), 
	FOREIGN KEY(namespace, seq) REFERENCES entries (namespace, seq), 
	FOREIGN KEY(namespace, concept) REFERENCES concepts (namespace, number)
)
 WITHOUT ROWID

;
INSERT INTO "links" VALUES(1,0,0,1.0,0,'a puppy');
INSERT INTO "links" VALUES(1,0,1,1.0,0,'adopted');
INSERT INTO "links" VALUES(1,0,2,0.3,1,NULL);
INSERT INTO "links" VALUES(1,1,0,1.0,0,'puppy');
INSERT INTO "links" VALUES(1,1,2,1.0,0,'Rex');
INSERT INTO "links" VALUES(1,1,3,0.5,2,'pet');
INSERT INTO "links" VALUES(2,0,0,1.0,0,'canoe');
CREATE TABLE memory_state (
	id INTEGER NOT NULL, 
	generation BIGINT NOT NULL, 
	unwiped BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "memory_state" VALUES(1,5,0);
CREATE TABLE models (
	number INTEGER NOT NULL, 
	fingerprint TEXT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (fingerprint)
);
INSERT INTO "models" VALUES(1,'tiny');
INSERT INTO "models" VALUES(2,'large');
CREATE TABLE namespaces (
	number INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	generation BIGINT NOT NULL, 
	next_seq BIGINT NOT NULL, 
	next_concept BIGINT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (name)
);
INSERT INTO "namespaces" VALUES(1,'["anna"]',5,3,5);
INSERT INTO "namespaces" VALUES(2,'["ben"]',3,1,1);
CREATE TABLE scores (
	namespace INTEGER NOT NULL, 
	concept BIGINT NOT NULL, 
	model INTEGER NOT NULL, 
	token_ids BLOB NOT NULL, 
	neutral BLOB, 
	PRIMARY KEY (namespace, concept, model), 
	FOREIGN KEY(namespace, concept) REFERENCES concepts (namespace, number), 
	FOREIGN KEY(model) REFERENCES models (number)
)
 WITHOUT ROWID

;
INSERT INTO "scores" VALUES(1,0,1,X'0500000006000000',X'000080BF000020C0000080BE');
INSERT INTO "scores" VALUES(1,2,2,X'010000000200000003000000',NULL);
INSERT INTO "scores" VALUES(1,3,1,X'07000000',NULL);
INSERT INTO "scores" VALUES(2,0,1,X'08000000',X'000040C0000000BF');
CREATE INDEX entries_by_digest ON entries (namespace, digest);
CREATE INDEX links_by_concept ON links (namespace, concept, origin, seq);
COMMIT;
