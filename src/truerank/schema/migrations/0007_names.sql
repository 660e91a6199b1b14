-- What is shown beside a member's id. Never in the order of a ranking, and never in Redis.
ALTER TABLE truerank.member
    ADD CONSTRAINT member_display_name_check
        CHECK (char_length(display_name) BETWEEN 1 AND 200),
    ADD COLUMN profile jsonb
        CHECK (octet_length(profile::text) <= 1024);
