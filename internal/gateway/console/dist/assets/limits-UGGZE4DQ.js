/* Licences of the libraries in this file: NOTICE.txt */
import{b as a,c as b,d as c}from"./chunk-XX6GRU4M.js";import"./chunk-4AUKJGMT.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
