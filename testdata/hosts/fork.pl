# Children forked from a process with a full heap go on allocating, hand results back through pipes and end in several ways.
use strict;
use warnings;
use POSIX ();

my %table = map { $_ => "value $_" x ($_ % 9) } 1 .. 50_000;
$| = 1;
my ($sum, $statuses) = (0, 0);
for my $round (1 .. 40) {
    pipe(my $read, my $write) or die "pipe: $!";
    my $pid = fork() // die "fork: $!";
    if ($pid == 0) {
        close $read;
        $table{"child $_"} = 'x' x $_ for 1 .. 2000;
        delete $table{$_} for 1 .. 10_000;
        print $write length(join '', sort values %table), "\n";
        close $write;
        if ($round % 3 == 0) { POSIX::_exit($round) }
        if ($round % 3 == 1) { exec 'sh', '-c', "exit $round" or die }
        exit $round;
    }
    close $write;
    $sum += <$read>;
    waitpid $pid, 0;
    $statuses += $? >> 8;
}
my $text = join ' ', map { $table{$_} } sort { $a <=> $b } keys %table;
my $words = () = $text =~ /\bvalue (\d*7)\b/g;
print "sum $sum, statuses $statuses, words $words\n";
print 'from a command: ', scalar(qx(echo hello from a shell));
exit 3 if $statuses != 820;
