pragma journal_mode = wal;
create table event(id integer primary key, kind text, amount real, body text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
insert into event select i, 'kind ' || (i * 7919 % 113), i * 0.25, printf('%0*d', i % 90, i) from n;
create index event_kind on event(kind, amount);
select kind, count(*), sum(amount) from event group by kind order by sum(amount) desc limit 5;
select count(*) from event a join event b on a.id = b.id * 3 where a.kind < b.kind;
select sum(x) from (select row_number() over (partition by kind order by body) * id % 1000 as x from event);
select json_group_array(json_object('k', kind, 'n', n)) from (select kind, count(*) n from event group by kind order by kind limit 3);
begin;
delete from event where id % 3 = 0;
update event set body = body || body where id % 5 = 0;
commit;
vacuum;
pragma integrity_check;
select count(*), sum(length(body)) from event;
