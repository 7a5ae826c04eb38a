/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-HC6HNFPT.js";import"./chunk-GRMG4GGS.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
